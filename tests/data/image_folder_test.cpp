#include "tandem/data/image_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class ImageFolderTest : public testing::Test {
 protected:
  void add(const std::string& name) {
    fs::create_directories((root_ / name).parent_path());
    put_bytes(root_ / name, "x");
  }
  Names names(const std::vector<fs::path>& files) const {
    Names result;
    for (const fs::path& file : files) result.push_back(file.lexically_relative(root_.path()).string());
    return result;
  }
  std::string error_of() {
    return error_text([&] { scan_image_folder(root_.path()); });
  }
  std::string root() const { return root_.path().string(); }

  TempFolder root_;
};

TEST_F(ImageFolderTest, Scan_SortsClassesAndFilesBytewise) {
  for (const char* name : {"dog/2.PNG", "dog/10.jpg", "Zebra/z.Jpeg", "Zebra/notes.txt", "cat/b.webp",
                           "cat/sub/a.bmp", "cat/sub dir/c.ppm", "cat/a.pgm", "loose.png", "ä/ü.jpeg"})
    add(name);
  const ImageFolder folder = scan_image_folder(root_.path());
  EXPECT_EQ(folder.classes, (Names{"Zebra", "cat", "dog", "ä"}));
  EXPECT_EQ(names(folder.files), (Names{"Zebra/z.Jpeg", "cat/a.pgm", "cat/b.webp", "cat/sub/a.bmp",
                                        "cat/sub dir/c.ppm", "dog/10.jpg", "dog/2.PNG", "ä/ü.jpeg"}));
  EXPECT_EQ(folder.labels, (std::vector<std::int32_t>{0, 1, 1, 1, 1, 2, 2, 3}));
  ASSERT_EQ(folder.skipped.size(), 2u);
  EXPECT_EQ(folder.skipped[0].name, (root_ / "loose.png").string());
  EXPECT_EQ(folder.skipped[0].kind, SkipKind::outside_classes);
  EXPECT_EQ(folder.skipped[1].name, (root_ / "Zebra/notes.txt").string());
  EXPECT_EQ(folder.skipped[1].reason, "unknown type .txt");
  EXPECT_EQ(count_skipped(folder.skipped), "2 files: 1 outside the class folders, 1 unknown type");
  EXPECT_EQ(skipped_csv(folder.skipped), "path,kind,reason\n" + folder.skipped[0].name +
                                             ",outside the class folders,outside the class folders\n" +
                                             folder.skipped[1].name + ",unknown type,unknown type .txt\n");
}

TEST_F(ImageFolderTest, ClassNameThatIsNotUtf8_IsRefused) {
  add("a\xFF/1.png");
  EXPECT_EQ(error_of(), "[folder] " + root() + ": expected the name of a class in UTF-8, got 'a\uFFFD'");
}

TEST_F(ImageFolderTest, Scan_FindsEveryKnownType) {
  const Names known{"a/1.BMP", "a/2.HEIC", "a/3.Heif", "a/4.JPEG", "a/5.jpg", "a/6.PGM",
                    "a/7.png", "a/8.ppm",  "a/9.TIF",  "a/A.tiff", "a/B.WebP"};
  for (const std::string& name : known) add(name);
  EXPECT_EQ(names(scan_image_folder(root_.path()).files), known);
}

TEST_F(ImageFolderTest, Scan_SortsFoldersByTheirWholePath) {
  for (const char* name : {"c/a/1.png", "c/a/x/2.png", "c/a b/3.png"}) add(name);
  // A space comes before the slash.
  EXPECT_EQ(names(scan_image_folder(root_.path()).files), (Names{"c/a/1.png", "c/a b/3.png", "c/a/x/2.png"}));
}

TEST_F(ImageFolderTest, Scan_IgnoresHiddenFilesAndFolders) {
  for (const char* name :
       {"cat/a.png", "cat/.b.png", "cat/.thumbs/c.png", ".git/d.png", "cat/png", "cat/.png"})
    add(name);
  const ImageFolder folder = scan_image_folder(root_.path());
  EXPECT_EQ(folder.classes, Names{"cat"});
  EXPECT_EQ(names(folder.files), Names{"cat/a.png"});
}

TEST_F(ImageFolderTest, Scan_NamesWithSpecialCharacters_AreFound) {
  for (const char* name : {"a class/it's \"one\".png", "a class/line\nend.png", "a class/\xFF.png"})
    add(name);
  EXPECT_EQ(scan_image_folder(root_.path()).files.size(), 3u);
}

TEST_F(ImageFolderTest, Scan_FollowsLinksButNotCycles) {
  add("cat/a.png");
  const TempFolder elsewhere;
  put_bytes(elsewhere / "b.png", "x");
  fs::create_directory_symlink(elsewhere.path(), root_ / "cat/linked");
  fs::create_directory_symlink(elsewhere.path(), root_ / "dog");
  fs::create_directory_symlink("..", root_ / "cat/up");
  fs::create_directory_symlink(".", root_ / "cat/here");
  fs::create_symlink("nowhere", root_ / "cat/c.png");
  // cat/up leads to all classes again, but cat is already on the path.
  const ImageFolder folder = scan_image_folder(root_.path());
  EXPECT_EQ(folder.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(names(folder.files),
            (Names{"cat/a.png", "cat/c.png", "cat/linked/b.png", "cat/up/dog/b.png", "dog/b.png"}));
}

TEST_F(ImageFolderTest, Scan_BadFolders_Throw) {
  EXPECT_EQ(error_of(), "[folder] " + root() + ": expected a folder for each class in it, got none");
  add("loose.png");
  EXPECT_EQ(error_of(),
            "[folder] " + root() + ": expected a folder for each class in it, got none, only images");
  add("cat/a.png");
  add("line\nend/readme.txt");
  EXPECT_EQ(error_of(), "[folder] " + root() +
                            ": class 'line end' has no images (jpg, jpeg, png, ppm, pgm, pbm, bmp, webp, "
                            "tif, tiff, heic, heif)");
  EXPECT_EQ(error_text([&] { scan_image_folder(root_ / "none"); }),
            "[folder] " + root() + "/none: cannot be read: No such file or directory");
  EXPECT_EQ(error_text([&] { scan_image_folder(root_ / "loose.png"); }),
            "[folder] " + root() + "/loose.png: expected a folder, got a file");
}

TEST_F(ImageFolderTest, Scan_FolderWithoutPermission_Throws) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser reads everything";
  add("cat/a.png");
  add("cat/closed/b.png");
  fs::permissions(root_ / "cat/closed", fs::perms::none);
  EXPECT_EQ(error_of(), "[folder] " + root() + "/cat/closed: cannot be read: Permission denied");
  fs::permissions(root_ / "cat/closed", fs::perms::owner_all);
}

TEST_F(ImageFolderTest, ListImages_OfAFolderOrFile) {
  for (const char* name : {"b.png", "sub/a.jpg", "notes.txt"}) add(name);
  EXPECT_EQ(names(list_images(root_.path()).files), (Names{"b.png", "sub/a.jpg"}));
  ASSERT_EQ(list_images(root_.path()).skipped.size(), 1u);
  EXPECT_EQ(list_images(root_.path()).skipped[0].name, (root_ / "notes.txt").string());
  EXPECT_EQ(names(list_images(root_ / "notes.txt").files), Names{"notes.txt"});
  fs::create_directory(root_ / "empty");
  EXPECT_EQ(error_text([&] { list_images(root_ / "empty"); }),
            "[folder] " + root() +
                "/empty: has no images (jpg, jpeg, png, ppm, pgm, pbm, bmp, webp, tif, tiff, heic, heif)");
  EXPECT_EQ(error_text([&] { list_images(root_ / "none"); }),
            "[folder] " + root() + "/none: no such file or folder");
}

}  // namespace
}  // namespace tandem
