#include "tandem/data/split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class SplitTest : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& bytes = "x") {
    fs::create_directories((root_ / "from" / name).parent_path());
    put_bytes(root_ / "from" / name, bytes);
  }
  Names below(const std::string& folder) const {
    Names names;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / folder))
      if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(root_ / folder).string());
    std::ranges::sort(names);
    return names;
  }
  std::string error_of(const std::string& to, const SplitOptions& options = {}) {
    return error_text([&] { split_folder(root_ / "from", root_ / to, options); });
  }
  std::string at(const std::string& name) const { return (root_ / name).string(); }

  TempFolder root_;
};

TEST_F(SplitTest, Default_HoldsOutEverySixthFile) {
  for (int i = 0; i < 13; ++i) add(fmt::format("clean/{:02}.png", i), std::to_string(i));
  for (int i = 0; i < 2; ++i) add(fmt::format("dirty/{}.jpg", i));
  const SplitCounts counts = split_folder(root_ / "from", root_ / "to");
  EXPECT_EQ(counts.classes, 2u);
  EXPECT_EQ(counts.train, 11u);
  EXPECT_EQ(counts.val, 4u);
  EXPECT_EQ(below("to/val"), (Names{"clean/00.png", "clean/06.png", "clean/12.png", "dirty/0.jpg"}));
  EXPECT_EQ(below("to/train").size(), 11u);
  EXPECT_EQ(get_bytes(root_ / "to/val/clean/12.png"), "12");
  EXPECT_EQ(below("from").size(), 15u);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "to"), {}), 2);
}

TEST_F(SplitTest, FilesThatAreNoImages_AreListed) {
  for (const char* name : {"a/0.png", "a/1.HEIC", "a/notes.txt", "loose.jpg"}) add(name);
  const SplitCounts counts = split_folder(root_ / "from", root_ / "to");
  EXPECT_EQ(count_skipped(counts.skipped), "2 files: 1 outside the class folders, 1 unknown type");
  EXPECT_EQ(get_bytes(root_ / "to/not-copied.csv"), skipped_csv(counts.skipped));
  EXPECT_EQ(below("to"), (Names{"not-copied.csv", "train/a/1.HEIC", "val/a/0.png"}));
}

TEST_F(SplitTest, SpecialNamesAndNestedFolders_AreKept) {
  for (const char* name : {"a b/it's \"1\".png", "a b/line\nend.png", "a b/ü/x.png"}) add(name);
  split_folder(root_ / "from" / "", root_ / "to", {.every = 2});
  EXPECT_EQ(below("to/val"), (Names{"a b/it's \"1\".png", "a b/ü/x.png"}));
  EXPECT_EQ(below("to/train"), Names{"a b/line\nend.png"});
}

TEST_F(SplitTest, Link_MakesSymbolicLinks) {
  add("c/0.png", "zero");
  add("c/1.png", "one");
  fs::create_directory(root_ / "to");  // empty: fine
  split_folder(root_ / "from", root_ / "to", {.link = true});
  EXPECT_TRUE(fs::is_symlink(root_ / "to/train/c/1.png"));
  EXPECT_EQ(get_bytes(root_ / "to/train/c/1.png"), "one");
}

TEST_F(SplitTest, BadArguments_ThrowAndWriteNothing) {
  add("c/0.png");
  add("c/1.png");
  fs::create_directory(root_ / "full");
  put_bytes(root_ / "full/old", "kept");
  EXPECT_EQ(error_of("full"),
            "[split] " + at("full") + " is not empty: expected a new or empty folder to write to");
  EXPECT_EQ(error_of("full/old"), "[split] " + at("full/old") + ": expected a folder, got a file");
  for (const char* inside : {"from", "from/to", "from/c/../to"})
    EXPECT_EQ(error_of(inside),
              "[split] expected a folder outside " + at("from") + " to write to, got " + at(inside));
  EXPECT_EQ(error_of("to", {.every = 1}), "[split] expected to hold out one file in 2 or more, got one in 1");
  add("lonely/0.png");
  EXPECT_EQ(error_of("to"), "[split] " + at("from") +
                                ": class 'lonely' has one image only: expected one for training and one for "
                                "validation");
  EXPECT_FALSE(fs::exists(root_ / "to"));
  EXPECT_EQ(below("full"), Names{"old"});
}

TEST_F(SplitTest, FailedCopy_LeavesNothing) {
  add("c/0.png");
  add("c/1.png", std::string(10000, 'x'));
  with_full_disk(5000, [&] {
    EXPECT_EQ(error_of("to"), "[split] cannot copy " + at("from/c/1.png") + ": File too large");
  });
  EXPECT_FALSE(fs::exists(root_ / "to"));
  fs::create_directory(root_ / "to");
  fs::create_symlink("nowhere", root_ / "from/c/2.png");
  EXPECT_EQ(error_of("to"), "[split] " + at("from/c/2.png") + ": no such file");
  EXPECT_TRUE(fs::is_empty(root_ / "to"));
}

TEST_F(SplitTest, FilesOfAKilledSplit_AreReplaced) {
  add("c/0.png");
  add("c/1.png");
  fs::create_directories(root_ / "to/.tandem-split.tmp/train/c");
  put_bytes(root_ / "to/.tandem-split.tmp/train/c/9.png", "old");
  split_folder(root_ / "from", root_ / "to");
  EXPECT_EQ(below("to"), (Names{"train/c/1.png", "val/c/0.png"}));
  EXPECT_FALSE(fs::exists(root_ / "to/.tandem-split.tmp"));
}

}  // namespace
}  // namespace tandem
