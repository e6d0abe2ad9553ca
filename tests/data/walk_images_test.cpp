// Finding image files below a folder.
#include "tandem/data/walk_images.h"

#include <gtest/gtest.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(WalkImages, UnreadableFolder_IsGivenToTheFunctionOrThrown) {
  const TempFolder folder;
  std::vector<std::string> folders, errors;
  const ImageList list =
      walk_images(folder / "missing", [&](const std::filesystem::path& path, const Error& error) {
        folders.push_back(path.filename().string());
        errors.emplace_back(error.what());
      });
  EXPECT_TRUE(list.files.empty());
  EXPECT_EQ(folders, std::vector<std::string>{"missing"});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(errors[0].ends_with("missing: cannot be read: No such file or directory")) << errors[0];
  EXPECT_THROW(walk_images(folder / "missing"), Error);
}

TEST(WalkImages, Files_AreSortedByFolderThenName) {
  const TempFolder folder;
  for (const char* name : {"b", "a", "a.b"}) std::filesystem::create_directory(folder / name);
  for (const char* name : {"z.png", "a/2.JPG", "a/1.jpg", "a.b/3.png", "b/0.bmp", "a/x.txt"})
    put_bytes(folder / name, "");
  std::vector<std::string> names;
  const ImageList list = walk_images(folder.path());
  for (const std::filesystem::path& file : list.files)
    names.push_back(file.lexically_relative(folder.path()).string());
  EXPECT_EQ(names, (std::vector<std::string>{"z.png", "a/1.jpg", "a/2.JPG", "a.b/3.png", "b/0.bmp"}));
  ASSERT_EQ(list.skipped.size(), 1U);
  EXPECT_EQ(list.skipped[0].reason, "unknown type .txt");
}

}  // namespace
}  // namespace tandem
