#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/study/grade/submission.h"
#include "tests/core/error_text.h"
#include "tests/files/archives.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file("test", path, text);
}

// The error of opening an archive with these files, as a.zip.
std::string zip_problem(const std::vector<ZippedFile>& files, const ZipOptions& options = {}) {
  const TempFolder folder;
  write(folder / "a.zip", zip(files, options));
  return error_text([&] { open_submission(folder / "a.zip"); });
}

TEST(Submission, Folder_IsCopied) {
  const TempFolder folder;
  write(folder / "ada/max.cpp", "one");
  write(folder / "ada/lib/help.h", "two");
  write(folder / "ada/.git/config", "hidden");
  write(folder / "ada/__pycache__/x.py", "cache");
  const Submission submission = open_submission((folder / "ada").string() + "/");
  EXPECT_EQ(submission.name, "ada");
  EXPECT_EQ(submission.files, (std::vector<std::string>{"lib/help.h", "max.cpp"}));
  EXPECT_EQ(read_file("test", submission.folder / "lib/help.h", 100), "two");
  EXPECT_EQ(submission.hash, submission_hash(folder / "ada"));
  write(folder / "ada/lib/help.h", "three");
  EXPECT_NE(submission.hash, submission_hash(folder / "ada"));
  EXPECT_EQ(read_file("test", submission.folder / "lib/help.h", 100), "two");
}

TEST(Submission, Archive_IsUnpackedWithoutTheFolderAroundEverything) {
  const TempFolder folder;
  write(folder / "bob.zip", zip({{.name = "homework/", .contents = ""},
                                 {.name = "homework/max.py", .contents = "def max(): pass", .deflated = true},
                                 {.name = "__MACOSX/homework/._max.py", .contents = "x"}}));
  const Submission submission = open_submission(folder / "bob.zip");
  EXPECT_EQ(submission.name, "bob");
  EXPECT_EQ(submission.files, std::vector<std::string>{"max.py"});
  EXPECT_EQ(part_file(submission, "max"), submission.folder / "max.py");
}

TEST(Submission, SingleFile_IsEnough) {
  const TempFolder folder;
  write(folder / "eve.cpp", "int x;");
  const Submission submission = open_submission(folder / "eve.cpp");
  EXPECT_EQ(submission.name, "eve");
  EXPECT_EQ(part_file(submission, "max"), submission.folder / "eve.cpp");
  EXPECT_EQ(part_file(submission, "xxt"), submission.folder / "eve.cpp");
}

TEST(Submission, Nothing_IsAnError) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { open_submission(folder / "nobody"); }),
            "[submission] " + (folder / "nobody").string() + ": no such file or folder");
  fs::create_directory(folder / "empty");
  const std::string expected = ": is empty: expected a source file (.cpp, .cc, .cxx, .c, .cu, .py, .so)";
  EXPECT_EQ(error_text([&] { open_submission(folder / "empty"); }), "[submission] empty" + expected);
  EXPECT_EQ(zip_problem({}), "[submission] a.zip" + expected);
  EXPECT_EQ(zip_problem({{.name = "readme.txt", .contents = "x"}}), "[submission] a.zip" + expected);
  write(folder / "a.zip", "");
  EXPECT_EQ(error_text([&] { open_submission(folder / "a.zip"); }), "[submission] a.zip: is empty");
  write(folder / "a.zip", "no archive");
  EXPECT_EQ(error_text([&] { open_submission(folder / "a.zip"); }),
            "[zip] a.zip: not a zip archive, or truncated");
  write(folder / "a.txt", "text");
  EXPECT_NE(error_text([&] {
              open_submission(folder / "a.txt");
            }).find("expected a folder, a .zip file or a source file"),
            std::string::npos);
}

TEST(Submission, ArchiveWithPathsThatLeaveIt_IsRefused) {
  EXPECT_EQ(zip_problem({{.name = "/etc/max.cpp", .contents = "x"}}),
            "[submission] a.zip: '/etc/max.cpp' is an absolute path");
  EXPECT_EQ(zip_problem({{.name = "C:\\max.cpp", .contents = "x"}}),
            "[submission] a.zip: 'C:/max.cpp' is an absolute path");
  EXPECT_EQ(zip_problem({{.name = "a/../../max.cpp", .contents = "x"}}),
            "[submission] a.zip: 'a/../../max.cpp' leads out of the archive");
  EXPECT_EQ(zip_problem({{.name = "..\\max.cpp", .contents = "x"}}),
            "[submission] a.zip: '../max.cpp' leads out of the archive");
  EXPECT_EQ(zip_problem({{.name = "a\nb.cpp", .contents = "x"}}),
            "[submission] a.zip: 'a b.cpp' is not a name for a file");
}

TEST(Submission, ArchiveWithImpossibleNames_IsRefused) {
  EXPECT_EQ(zip_problem({{.name = "a.c", .contents = "x"},
                         {.name = "a.c-b", .contents = "x"},
                         {.name = "a.c/b", .contents = "x"}}),
            "[submission] a.zip: 'a.c' is a file and a folder");
  EXPECT_NE(
      zip_problem({{.name = std::string(300, 'a') + ".c", .contents = "x"}}).find("is not a name for a file"),
      std::string::npos);
}

TEST(Submission, Links_AreRefused) {
  constexpr std::uint32_t unix_link = 0120777;
  EXPECT_EQ(zip_problem({{.name = "max.cpp", .contents = "/etc/passwd", .mode = unix_link}}),
            "[submission] a.zip: 'max.cpp' is a link");
  const TempFolder folder;
  write(folder / "ada/max.cpp", "one");
  fs::create_symlink("/etc/passwd", folder / "ada/more.cpp");
  EXPECT_EQ(error_text([&] { open_submission(folder / "ada"); }), "[submission] ada: 'more.cpp' is a link");
}

TEST(Submission, TooManyFiles_AreRefused) {
  std::vector<ZippedFile> files;
  for (int i = 0; i < 100000; ++i) files.push_back({.name = std::to_string(i) + ".c", .contents = ""});
  EXPECT_EQ(zip_problem(files, {.zip64 = true}), "[submission] a.zip: has 100000 files, the limit is 1000");
  files.resize(1001);
  EXPECT_EQ(zip_problem(files), "[submission] a.zip: has 1001 files, the limit is 1000");
  files.resize(1000);
  const TempFolder folder;
  write(folder / "a.zip", zip(files));
  EXPECT_EQ(open_submission(folder / "a.zip").files.size(), 1000u);
  for (int i = 0; i <= 1000; ++i) write(folder / ("ada/" + std::to_string(i) + ".c"), "");
  EXPECT_EQ(error_text([&] { open_submission(folder / "ada"); }),
            "[submission] ada: has more than 1000 files");
}

TEST(Submission, TooManyBytes_AreRefused) {
  const std::string part(60 << 20, 'x');  // deflated to 60 kB
  const std::string text = zip_problem({{.name = "a.c", .contents = part, .deflated = true},
                                        {.name = "b.c", .contents = part, .deflated = true}});
  EXPECT_NE(text.find("a zip bomb?"), std::string::npos) << text;
  const TempFolder folder;
  write(folder / "ada/max.cpp", "one");
  fs::resize_file(folder / "ada/max.cpp", max_submission_bytes + 1);
  EXPECT_EQ(error_text([&] { open_submission(folder / "ada"); }), "[submission] ada: has more than 100 MB");
}

TEST(Submission, PartFile_IsFoundByName) {
  const TempFolder folder;
  write(folder / "ada/max.cpp", "one");
  write(folder / "ada/kernels.py", "two");
  const Submission submission = open_submission(folder / "ada");
  EXPECT_EQ(part_file(submission, "max"), submission.folder / "max.cpp");
  EXPECT_EQ(part_file(submission, "xxt"), submission.folder / "kernels.py");
}

TEST(Submission, PartFile_MissingOrAmbiguous) {
  const TempFolder folder;
  write(folder / "ada/max.cpp", "one");
  write(folder / "ada/max.py", "two");
  const Submission submission = open_submission(folder / "ada");
  EXPECT_EQ(part_file(submission, "xxt"), std::nullopt);
  EXPECT_EQ(error_text([&] { part_file(submission, "max"); }),
            "[submission] ada: found max.cpp and max.py: which one is meant for max?");
}

TEST(Submission, ClassFolder_HoldsFoldersAndArchives) {
  const TempFolder folder;
  write(folder / "class/ada/max.cpp", "one");
  write(folder / "class/bob.zip", "two");
  write(folder / "class/list.txt", "names");
  EXPECT_TRUE(is_class_folder(folder / "class"));
  EXPECT_FALSE(is_class_folder(folder / "class/ada"));
  const auto all = submissions_in(folder / "class");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], folder / "class/ada");
  EXPECT_EQ(all[1], folder / "class/bob.zip");
  write(folder / "class/ada.py", "one");
  EXPECT_NE(error_text([&] { submissions_in(folder / "class"); }).find("have the same name"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
