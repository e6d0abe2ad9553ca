#include "tandem/image/heif_references.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += char(value >> shift & 0xFF);
  return text;
}

std::string box(const std::string& type, const std::string& contents) {
  return number(8 + contents.size(), 4) + type + contents;
}

struct Reference {
  uint64_t from;
  std::vector<uint64_t> to;
  std::string type = "dimg";
};

// A file with these references; numbers have 16 or 32 bits.
std::string file_with(const std::vector<Reference>& references, bool wide = false) {
  const int bytes = wide ? 4 : 2;
  std::string contents(wide ? "\1\0\0\0" : "\0\0\0\0", 4);
  for (const Reference& reference : references) {
    std::string numbers = number(reference.from, bytes) + number(reference.to.size(), 2);
    for (const uint64_t to : reference.to) numbers += number(to, bytes);
    contents += box(reference.type, numbers);
  }
  return box("ftyp", "heic") +
         box("meta", std::string(4, '\0') + box("pitm", "12345678") + box("iref", contents)) +
         box("mdat", "pixels");
}

bool ends(const std::string& file) {
  return heif_references_end(bytes_of(file));
}

// 1 is made of 2, 2 of 3 and so on.
std::vector<Reference> chain(uint64_t levels) {
  std::vector<Reference> references;
  for (uint64_t i = 1; i <= levels; ++i) references.push_back({i, {i + 1}});
  return references;
}

TEST(HeifReferences, GridWithAlpha_Ends) {
  for (const bool wide : {false, true})
    EXPECT_TRUE(
        ends(file_with({{1, {2, 3, 4, 5}}, {6, {7, 8, 9, 10}}, {6, {1}, "auxl"}, {11, {1}, "thmb"}}, wide)));
  EXPECT_TRUE(ends(file_with({})));
  EXPECT_TRUE(ends(""));
}

TEST(HeifReferences, MadeOfItself_DoesNotEnd) {
  for (const bool wide : {false, true}) {
    EXPECT_FALSE(ends(file_with({{2, {2}}}, wide)));
    EXPECT_FALSE(ends(file_with({{1, {5, 2}}, {2, {3}}, {3, {4, 1}}}, wide)));
    EXPECT_FALSE(ends(file_with({{1, {2}}, {1, {2}, "auxl"}}, wide))) << "the alpha of 2 is made of 2";
  }
}

TEST(HeifReferences, LevelsAreLimited) {
  EXPECT_TRUE(ends(file_with(chain(8))));
  EXPECT_FALSE(ends(file_with(chain(9))));
  auto backwards = chain(9);
  std::ranges::reverse(backwards);
  EXPECT_FALSE(ends(file_with(backwards)));
  EXPECT_FALSE(ends(file_with(chain(60000)))) << "without recursion over all of them";
}

TEST(HeifReferences, ImagesAreLimited) {
  EXPECT_TRUE(ends(file_with({{1, std::vector<uint64_t>(65535, 2)}})));
  // Each of four levels is made of 20 times the next: 168,420 images from 80 numbers.
  std::vector<Reference> levels;
  for (uint64_t i = 1; i <= 4; ++i) levels.push_back({i, std::vector<uint64_t>(20, i + 1)});
  EXPECT_FALSE(ends(file_with(levels)));
}

TEST(HeifReferences, SizesInOtherForms_AreRead) {
  const std::string bad = file_with({{2, {2}}}).substr(12);  // from the box meta on
  const std::string meta = bad.substr(8, bad.size() - 8 - 14);
  EXPECT_FALSE(ends(number(1, 4) + "meta" + number(16 + meta.size(), 8) + meta));
  EXPECT_FALSE(ends(number(0, 4) + "meta" + meta)) << "up to the end of the file";
  EXPECT_FALSE(ends(number(1 << 30, 4) + "meta" + meta)) << "cut off";
}

TEST(HeifReferences, EveryTruncation_IsRead) {
  const std::string whole = file_with({{1, {2, 3}}, {2, {2}}});
  for (size_t length = 0; length < whole.size(); ++length) ends(whole.substr(0, length));
  EXPECT_TRUE(ends(std::string(64, '\0')));
}

TEST(HeifReferences, DecodingSuchAFile_Throws) {
  if (!can_decode("HEIC")) GTEST_SKIP() << "without libheif";
  const std::string cyclic =
      box("ftyp", std::string("heic\0\0\0\0mif1heic", 16)) + file_with({{2, {2}}}).substr(12);
  try {
    decode_image(bytes_of(cyclic), "x");
    FAIL();
  } catch (const DecodeError& error) {
    EXPECT_STREQ(error.what(),
                 "[decode] x: the HEIC is damaged: an image in it is made of itself or of too many others");
  }
}

}  // namespace
}  // namespace tandem
