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

// ---- sizes of grids and overlays

const std::string full_box(4, '\0');

std::string info(uint64_t item, const std::string& type) {
  return box("infe", std::string("\2\0\0\0", 4) + number(item, 2) + number(0, 2) + type + '\0');
}

// Item 1 is of this type and has the header, in the box idat (or else in mdat, in two pieces).
std::string file_with_canvas(const std::string& type, const std::string& header, bool in_idat = true,
                             const std::string& more = "") {
  const std::string types = box("iinf", full_box + number(2, 2) + info(7, "hvc1") + info(1, type));
  const std::string ftyp = box("ftyp", std::string("heic\0\0\0\0mif1heic", 16));
  const auto whole = [&](uint64_t start) {
    const std::string extents = in_idat
                                    ? number(0, 4) + number(1, 2) + number(0, 4) + number(header.size(), 4)
                                    : number(start, 4) + number(2, 2) + number(0, 4) + number(3, 4) +
                                          number(3, 4) + number(header.size() - 3, 4);
    const std::string places = box("iloc", std::string("\1\0\0\0\x44\x40", 6) + number(1, 2) + number(1, 2) +
                                               number(in_idat ? 1 : 0, 2) + number(0, 2) + extents);
    return ftyp + box("meta", full_box + types + places + (in_idat ? box("idat", header) : "") + more) +
           box("mdat", header);
  };
  return whole(whole(0).size() - header.size());
}

std::string sizes(const std::string& file) {
  const auto canvases = heif_canvases(bytes_of(file));
  if (!canvases) return "invalid";
  std::string text;
  for (const HeifCanvas& canvas : *canvases)
    text += std::to_string(canvas.width) + "x" + std::to_string(canvas.height) + " ";
  return text;
}

const std::string small_grid = number(0, 4) + number(25705, 2) + number(28007, 2);
const std::string large_grid = number(0x00010203, 4) + number(100000, 4) + number(70000, 4);

TEST(HeifCanvas, SizesOfGridsAndOverlays_AreRead) {
  for (const bool in_idat : {true, false}) {
    EXPECT_EQ(sizes(file_with_canvas("grid", small_grid, in_idat)), "25705x28007 ");
    EXPECT_EQ(sizes(file_with_canvas("grid", large_grid, in_idat)), "100000x70000 ");
    const std::string color(8, 'c');
    EXPECT_EQ(
        sizes(file_with_canvas("iovl", number(0, 2) + color + number(300, 2) + number(200, 2), in_idat)),
        "300x200 ");
    EXPECT_EQ(
        sizes(file_with_canvas("iovl", number(1, 2) + color + number(70000, 4) + number(1, 4), in_idat)),
        "70000x1 ");
    EXPECT_EQ(sizes(file_with_canvas("hvc1", small_grid, in_idat)), "");
    EXPECT_EQ(sizes(file_with_canvas("grid", small_grid.substr(0, 7), in_idat)), "") << "cut off";
  }
  EXPECT_EQ(sizes(""), "");
}

TEST(HeifCanvas, TablesThatAreReadInTwoWays_AreRefused) {
  for (const char* const table : {"iinf", "iloc", "idat"})
    EXPECT_EQ(sizes(file_with_canvas("grid", small_grid, true, box(table, full_box + number(0, 4)))),
              "invalid")
        << table;
  const std::string file = file_with_canvas("grid", small_grid);
  EXPECT_EQ(sizes(file + file), "invalid") << "two boxes meta";
  std::string same_item = file;
  same_item[same_item.find("infe") + 9] = 1;  // item 7 becomes another 1
  EXPECT_EQ(sizes(same_item), "invalid");
  std::string odd_width = file;
  odd_width[odd_width.find("iloc") + 8] = 0x42;
  EXPECT_EQ(sizes(odd_width), "invalid");
}

TEST(HeifCanvas, EveryTruncation_IsRead) {
  for (const bool in_idat : {true, false}) {
    const std::string whole = file_with_canvas("grid", large_grid, in_idat);
    for (size_t length = 0; length < whole.size(); ++length) sizes(whole.substr(0, length));
  }
}

// Numbers of no bytes: ten bytes say 65,535 extents. Without end if each is looked at.
TEST(HeifCanvas, ExtentsOfNoBytes_TakeNoTime) {
  const uint64_t items = 100'000;
  std::string places = std::string("\2\0\0\0\0\0", 6) + number(items, 4);
  for (uint64_t i = 1; i <= items; ++i)
    places += number(i, 4) + number(1, 2) + number(0, 2) + number(65535, 2);
  EXPECT_EQ(sizes(box("meta", full_box + box("iinf", full_box + number(1, 2) + info(1, "grid")) +
                                  box("iloc", places))),
            "");
}

// libheif 1.15 took 2 GB for such a file of 500 bytes, and crashed.
TEST(HeifCanvas, LargeGrid_IsRefusedBeforeMemoryIsTaken) {
  if (!can_decode("HEIC")) GTEST_SKIP() << "without libheif";
  try {
    decode_image(bytes_of(file_with_canvas("grid", small_grid)), "x");
    FAIL();
  } catch (const DecodeError& error) {
    EXPECT_STREQ(
        error.what(),
        "[decode] x: 25705x28007 is 719919935 pixels, the limit is 179000000 (--max-pixels raises it)");
  }
}

}  // namespace
}  // namespace tandem
