#include "tandem/files/followed_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/files/test_files.h"

namespace tandem {
namespace {

class FollowedFileTest : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app | std::ios::binary) << text; }
  // The lines since the last call; "restart" where the file was read anew.
  std::vector<std::string> poll(std::int64_t max_bytes = 4 << 20) {
    std::vector<std::string> lines;
    last_ = file_.poll([&] { lines.emplace_back("restart"); },
                       [&](std::string_view line) { lines.emplace_back(line); }, max_bytes);
    return lines;
  }
  using Lines = std::vector<std::string>;

  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "log.csv";
  FollowedFile file_{path_};
  FollowedFile::Poll last_;
};

TEST_F(FollowedFileTest, AppendedLines_AreDeliveredOnce) {
  EXPECT_EQ(poll(), Lines{});
  EXPECT_FALSE(last_.exists);
  append("a\nb\r\n");
  EXPECT_EQ(poll(), (Lines{"a", "b"}));
  EXPECT_TRUE(last_.exists && last_.changed);
  EXPECT_EQ(poll(), Lines{});
  EXPECT_TRUE(last_.exists && !last_.changed);
  append("c\n\n");
  EXPECT_EQ(poll(), (Lines{"c", ""}));
}

TEST_F(FollowedFileTest, TornLine_WaitsForItsEnd) {
  append("one\ntw");
  EXPECT_EQ(poll(), (Lines{"one"}));
  append("");
  EXPECT_EQ(poll(), Lines{});
  append("o");
  EXPECT_EQ(poll(), Lines{});
  append("\nthree");
  EXPECT_EQ(poll(), (Lines{"two"}));
}

TEST_F(FollowedFileTest, ReplacedOrShorterFile_IsReadAnew) {
  append("a\nb\n");
  poll();
  put_bytes(folder_ / "new", "x\ny\nz\n");
  std::filesystem::rename(folder_ / "new", path_);
  EXPECT_EQ(poll(), (Lines{"restart", "x", "y", "z"}));
  std::filesystem::resize_file(path_, 2);
  EXPECT_EQ(poll(), (Lines{"restart", "x"}));
}

TEST_F(FollowedFileTest, ReplacedByTheSameLinesAndMore_Continues) {
  append("a\nb\n");
  poll();
  put_bytes(folder_ / "new", "a\nb\nc\n");
  std::filesystem::rename(folder_ / "new", path_);
  EXPECT_EQ(poll(), (Lines{"c"}));
}

TEST_F(FollowedFileTest, FileThatDisappears_IsSurvived) {
  append("a\n");
  poll();
  std::filesystem::remove(path_);
  EXPECT_EQ(poll(), Lines{});
  EXPECT_FALSE(last_.exists);
  append("other\n");
  EXPECT_EQ(poll(), (Lines{"restart", "other"}));
}

TEST_F(FollowedFileTest, HugeLine_IsDropped) {
  append("a\n" + std::string(3 * FollowedFile::max_line, 'x'));
  EXPECT_EQ(poll(), (Lines{"a"}));
  append(std::string(1000, 'x'));
  EXPECT_EQ(poll(), Lines{});
  append("\nb\n");
  EXPECT_EQ(poll(), (Lines{"b"}));
  append(std::string(FollowedFile::max_line, 'y') + "\n" + std::string(FollowedFile::max_line + 1, 'z') +
         "\nc\n");
  EXPECT_EQ(poll(), (Lines{std::string(FollowedFile::max_line, 'y'), "c"}));
}

TEST_F(FollowedFileTest, LongFile_IsReadInParts) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  append(text);
  Lines all = poll(100'000);
  EXPECT_TRUE(last_.more);
  EXPECT_LT(all.size(), 60'000U);
  while (last_.more)
    for (const std::string& line : poll(100'000)) all.push_back(line);
  ASSERT_EQ(all.size(), 100'000U);
  EXPECT_EQ(all[77'777], "77777");
  EXPECT_EQ(poll(), Lines{});
}

TEST_F(FollowedFileTest, FolderOrPipe_IsNotRead) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(poll(), Lines{});
  EXPECT_FALSE(last_.exists);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(poll(), Lines{});
  EXPECT_FALSE(last_.exists);
}

}  // namespace
}  // namespace tandem
