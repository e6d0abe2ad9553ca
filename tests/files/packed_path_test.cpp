#include "tandem/files/packed_path.h"

#include <gtest/gtest.h>

#include "tandem/files/read_file.h"
#include "tests/files/packed_sets.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class PackedPathCase : public testing::Test {
 protected:
  PackedPathCase() { write_packed(set_, {{"a/1.jpg", "one"}, {"a/b/2.jpg", "two"}}); }

  std::string read(const fs::path& inside) { return read_file("test", set_ / inside, 100); }

  TempFolder folder_;
  const fs::path set_ = folder_ / "set.tandem";
};

TEST_F(PackedPathCase, FilesAndFolders_AreThoseOfTheSet) {
  EXPECT_EQ(read("a/1.jpg"), "one");
  EXPECT_EQ(read(".//a/b/./2.jpg"), "two");
  EXPECT_EQ(bytes_in_file(set_ / "a/b/2.jpg"), 3u);
  EXPECT_EQ(bytes_in_file(set_), fs::file_size(set_));
  EXPECT_FALSE(bytes_in_file(set_ / "a").has_value());
  for (const char* const inside : {"", "a", "a/b", "a/b/"}) EXPECT_TRUE(is_folder(set_ / inside)) << inside;
  for (const char* const inside : {"a/1.jpg", "c"}) EXPECT_FALSE(is_folder(set_ / inside)) << inside;
}

TEST_F(PackedPathCase, OtherPaths_AreNotPacked) {
  fs::create_directories(folder_ / "folder.tandem/a");
  put_bytes(folder_ / "folder.tandem/a/1.jpg", "real");
  put_bytes(folder_ / "x.tandem.jpg", "real");
  EXPECT_FALSE(find_packed(folder_ / "folder.tandem/a/1.jpg").has_value());
  EXPECT_FALSE(find_packed(folder_ / "x.tandem.jpg").has_value());
  EXPECT_FALSE(find_packed(folder_ / "none.tandem/1.jpg").has_value());
  EXPECT_EQ(read_file("test", folder_ / "folder.tandem/a/1.jpg", 100), "real");
  EXPECT_TRUE(is_folder(folder_ / "folder.tandem"));
  write_packed(folder_ / "folder.tandem/inner.tandem", {{"1", "inner"}});
  EXPECT_EQ(read_file("test", folder_ / "folder.tandem/inner.tandem/1", 100), "inner");
}

TEST_F(PackedPathCase, Errors_NameThePath) {
  const std::string set = set_.string();
  EXPECT_EQ(error_text([&] { read("a/2.jpg"); }), "[test] " + set + "/a/2.jpg: no such file");
  EXPECT_EQ(error_text([&] { read("../1"); }), "[test] " + set + "/../1: no such file");
  EXPECT_EQ(error_text([&] { read("a"); }), "[test] " + set + "/a: expected a file, got a folder");
  EXPECT_EQ(error_text([&] { read_file("test", set_ / "a/1.jpg", 2); }),
            "[test] " + set + "/a/1.jpg: expected at most 2 bytes, got 3");
  put_bytes(folder_ / "e.tandem", "");
  EXPECT_EQ(error_text([&] { is_folder(folder_ / "e.tandem"); }),
            "[packed] " + (folder_ / "e.tandem").string() +
                ": expected a set written by tandem pack, got an empty file");
  put_bytes(folder_ / "file", "");
  EXPECT_EQ(error_text([&] { read_file("test", folder_ / "file/1.jpg", 9); }),
            "[test] " + (folder_ / "file/1.jpg").string() + ": cannot be read: Not a directory");
}

TEST_F(PackedPathCase, DamagedFile_IsFoundWhenItIsFirstRead) {
  std::string bytes = get_bytes(set_);
  bytes[bytes.find("two")] = 'T';
  put_bytes(folder_ / "bad.tandem", bytes);
  EXPECT_EQ(read_file("test", folder_ / "bad.tandem/a/1.jpg", 9), "one");
  for (int i = 0; i < 2; ++i) {
    try {
      read_file("test", folder_ / "bad.tandem/a/b/2.jpg", 9);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(skip_kind(error), SkipKind::damaged);
      EXPECT_EQ(std::string(error.what()), "[test] " + (folder_ / "bad.tandem/a/b/2.jpg").string() +
                                               ": the bytes do not have their checksum");
    }
  }
}

TEST_F(PackedPathCase, ReplacedOrCutWhileItIsUsed_IsOpenedAgain) {
  const std::optional<PackedFile> before = open_packed_file("test", set_ / "a/1.jpg");
  write_packed(set_, {{"a/1.jpg", "another"}});
  EXPECT_EQ(read("a/1.jpg"), "another");
  EXPECT_EQ(before->bytes, "one");  // the old file, as long as it is used
  fs::resize_file(set_, 100);
  EXPECT_EQ(error_text([&] { read("a/1.jpg"); }),
            "[packed] " + set_.string() + ": expected 104 bytes, as the header says, got 100");
}

}  // namespace
}  // namespace tandem
