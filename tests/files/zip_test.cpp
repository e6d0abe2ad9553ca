#include "tandem/files/zip.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/error_text.h"
#include "tests/files/archives.h"

namespace tandem {
namespace {

std::string contents(const ZipEntry& entry) {
  std::string unpacked;
  return std::string(unpack_entry(entry, unpacked, "z"));
}

std::string error_of(const std::string& archive) {
  const std::string text = error_text([&] {
    for (const ZipEntry& entry : read_zip(archive, "z")) contents(entry);
  });
  EXPECT_EQ(text.rfind("[zip] z: ", 0), 0u) << text;
  return text.substr(std::min<std::size_t>(text.size(), 9));
}

const std::string long_text(1000, 'p');

TEST(Zip, StoredAndDeflatedEntries) {
  const std::string archive = zip({{.name = "a/one", .contents = "first"},
                                   {.name = "a/", .contents = ""},
                                   {.name = "a/two", .contents = long_text, .deflated = true},
                                   {.name = "none", .contents = "", .deflated = true}});
  EXPECT_TRUE(is_zip(archive));
  const auto entries = read_zip(archive, "z");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a/one");
  EXPECT_EQ(contents(entries[0]), "first");
  EXPECT_EQ(contents(entries[1]), long_text);
  EXPECT_LT(entries[1].packed.size(), 100u);
  EXPECT_EQ(contents(entries[2]), "");
  EXPECT_TRUE(read_zip(zip({}), "z").empty());
}

TEST(Zip, SymbolicLinks_AreMarked) {
  constexpr std::uint32_t link = 0120777, file = 0100644;
  const std::string archive =
      zip({{.name = "a", .contents = "b", .mode = link}, {.name = "b", .contents = "", .mode = file}});
  const auto entries = read_zip(archive, "z");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_TRUE(entries[0].link);
  EXPECT_FALSE(entries[1].link);
}

TEST(Zip, Zip64AndDataDescriptors) {
  const std::string archive =
      zip({{.name = "x", .contents = "content", .descriptor = true}, {.name = "y", .contents = long_text}},
          {.zip64 = true});
  const auto entries = read_zip(archive, "z");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(contents(entries[0]), "content");
  EXPECT_EQ(contents(entries[1]), long_text);
}

TEST(Zip, ArchiveComment_IsAccepted) {
  EXPECT_EQ(read_zip(zip({{.name = "x", .contents = "1"}}, {.comment = "made by hand"}), "z").size(), 1u);
}

TEST(Zip, OtherFilesAndTruncatedArchives_Throw) {
  EXPECT_EQ(error_of(""), "not a zip archive, or truncated");
  EXPECT_EQ(error_of(std::string(100, 'x')), "not a zip archive, or truncated");
  const std::string archive = zip({{.name = "x", .contents = "1"}});
  for (std::size_t size = 0; size < archive.size(); ++size)
    EXPECT_EQ(error_of(archive.substr(0, size)), "not a zip archive, or truncated");
}

TEST(Zip, EncryptedAndUnknownMethods_Throw) {
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "1", .flags = 1}})), "'x' is encrypted");
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "1", .method = 12}})),
            "'x': expected a stored or deflated entry, got method 12");
}

TEST(Zip, WrongCrc_Throws) {
  EXPECT_EQ(error_of(zip({{.name = "x\ny", .contents = "1", .crc = 5}})),
            "'x y' is damaged: its CRC is wrong");
}

TEST(Zip, WrongSizes_Throw) {
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = long_text, .deflated = true, .size = 999}})),
            "'x' is damaged: it does not decompress to 999 bytes");
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = long_text, .deflated = true, .size = 1001}})),
            "'x' is damaged: it does not decompress to 1001 bytes");
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "abc", .size = 2}})),
            "'x' is stored, but its sizes 2 and 3 differ");
}

TEST(Zip, Bombs_AreRefusedBeforeAllocation) {
  const std::string archive = zip({{.name = "x", .contents = "1", .deflated = true, .size = 0xF0000000}});
  EXPECT_EQ(error_of(archive), "'x' would decompress to 4026531840 bytes, in total more than the limit of " +
                                   std::to_string((64 << 20) + 20 * archive.size()) + ": a zip bomb?");
  // Each entry alone is within the limit.
  const std::string many = zip({{.name = "x", .contents = "1", .deflated = true, .size = 40 << 20},
                                {.name = "y", .contents = "1", .deflated = true, .size = 40 << 20}});
  EXPECT_NE(error_of(many).find("'y' would decompress to"), std::string::npos);
}

TEST(Zip, OverlappingAndOutsideEntries_Throw) {
  // Two names for the same data, as in the most compact zip bombs.
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "1"}, {.name = "x", .contents = "1", .offset = 0}})),
            "'x' and 'x' overlap");
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "1", .offset = 5000}})),
            "'x' lies outside the file, at byte 5000");
  EXPECT_EQ(error_of(zip({{.name = "x", .contents = "1"}, {.name = "x", .contents = "2"}})),
            "contains 'x' twice");
}

TEST(Zip, LocalHeaderMismatch_Throws) {
  std::string archive = zip({{.name = "x", .contents = "1"}});
  archive[30] = 'y';
  EXPECT_EQ(error_of(archive), "damaged: the local header of 'x' does not agree with the directory");
}

TEST(Zip, AbsurdEntryCount_Throws) {
  std::string archive = zip({{.name = "x", .contents = "1"}});
  for (const std::size_t at : {8u, 10u}) {
    archive[archive.size() - 22 + at] = '\xFF';
    archive[archive.size() - 22 + at + 1] = '\x7F';
  }
  EXPECT_EQ(error_of(archive), "damaged: a directory of 32767 entries in 47 bytes at byte 32");
}

TEST(Zip, FlippedBytes_AreNotReadPastTheEnd) {
  for (const std::string& archive :
       {zip({{.name = "x", .contents = "content", .descriptor = true}, {.name = "y", .contents = long_text}},
            {.zip64 = true}),
        zip({{.name = "x", .contents = long_text, .deflated = true}})})
    for (std::size_t i = 0; i < archive.size(); ++i)
      for (const int flip : {1, 0x80, 0xFF}) {
        std::string broken = archive;
        broken[i] = static_cast<char>(broken[i] ^ flip);
        try {
          for (const ZipEntry& entry : read_zip(broken, "z")) contents(entry);
        } catch (const Error&) {
        }
      }
}

}  // namespace
}  // namespace tandem
