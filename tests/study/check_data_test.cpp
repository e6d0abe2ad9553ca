// tandem::check_data() on folders with known problems.
#include "tandem/study/check/check_data.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"
#include "tandem/study/check/copies.h"
#include "tests/image/jpeg_writer.h"
#include "tests/paths.h"
#include "tests/study/check_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class CheckData : public testing::Test {
 protected:
  CheckReport checked() const { return check_data({.data = folder_ / "data"}); }
  fs::path file(const std::string& name) const {
    const fs::path path = folder_ / ("data/" + name);
    fs::create_directories(path.parent_path());
    return path;
  }
  // An image that no other one looks like.
  void put_image(const std::string& name, std::uint64_t number, std::int64_t side = 40) const {
    put_png(name, render_plate(5, number, number % 2 == 0, side));
  }

  void put_png(const std::string& name, const Image& image) const {
    const std::vector<std::uint8_t> png = encode_png(image);
    put_bytes(file(name), {reinterpret_cast<const char*>(png.data()), png.size()});
  }

  TempFolder folder_;
};

std::vector<std::string> paths_of(const std::vector<OddImage>& images) {
  std::vector<std::string> paths;
  for (const OddImage& odd : images) paths.push_back(odd.image.path + ": " + odd.reason);
  return paths;
}

TEST_F(CheckData, PlantedCopiesAndLeaks_AreAllFoundAndNoOthers) {
  const PlantedFolder planted(folder_ / "data", 300);
  for (std::uint64_t i = 0; i < 20; ++i) planted.copy_plate(5 * i + 1, false);
  for (std::uint64_t i = 0; i < 10; ++i) planted.change_plate(5 * i + 100 + 2, static_cast<int>(i));
  for (std::uint64_t i = 0; i < 5; ++i) planted.copy_plate(5 * i + 200 + 3, true);
  const CheckReport report = checked();
  EXPECT_EQ(report.images, 335);
  EXPECT_TRUE(report.not_read.empty());
  const auto [identical, near] = count_copies(report);
  EXPECT_EQ(identical, 25);
  EXPECT_EQ(near, 10);
  EXPECT_EQ(report.copies.size(), 35U);
  const SortedCopies sorted = sorted_copies(report);
  EXPECT_EQ(sorted.leaks.size(), 5U);
  EXPECT_TRUE(sorted.conflicts.empty());
  for (const CopiedPicture& picture : report.copies) {
    ASSERT_EQ(picture.images.size(), 2U);
    const std::string number = picture.images[0].path.substr(picture.images[0].path.size() - 8);
    EXPECT_TRUE(picture.images[1].path.ends_with(number))
        << picture.images[0].path << " " << picture.images[1].path;
  }
  EXPECT_EQ(report.partly_compared, 0);
  EXPECT_TRUE(report.sizes.odd.empty());
}

TEST_F(CheckData, SwappedLabels_AreAmongTheFirstSuggestions) {
  const PlantedFolder planted(folder_ / "data", 240, 8, 64);
  ASSERT_EQ(planted.mislabeled.size(), 8U);
  setenv("TANDEM_WEIGHTS", (std::string(source_folder) + "/weights").c_str(), 1);
  const CheckReport report = check_data({.data = folder_ / "data", .model = "scenes", .image_size = 64});
  unsetenv("TANDEM_WEIGHTS");
  ASSERT_TRUE(report.features);
  EXPECT_EQ(report.features->weights, "resnet18, scenes");
  EXPECT_EQ(report.features->images, 240);
  EXPECT_GT(report.features->accuracy, 0.8);
  int found = 0;
  const auto& mislabels = report.features->mislabels;
  for (std::size_t i = 0; i < std::min<std::size_t>(16, mislabels.size()); ++i)
    if (planted.mislabeled.contains(mislabels[i].image.path)) {
      ++found;
      EXPECT_NE(mislabels[i].suggested, mislabels[i].image.label);
    }
  EXPECT_GE(found, 6);
}

TEST_F(CheckData, ModelWithoutEnoughLabels_IsTold) {
  for (std::uint64_t i = 0; i < 6; ++i) put_image(std::to_string(i) + ".png", i);
  const CheckReport report = check_data({.data = folder_ / "data", .model = "random", .image_size = 32});
  ASSERT_TRUE(report.features);
  EXPECT_EQ(report.features->note, "Not searched: two classes with 5 or more images each are needed.");
  EXPECT_TRUE(report.features->mislabels.empty());
  EXPECT_NE(error_text([&] {
              check_data({.data = folder_ / "data", .model = "scense"});
            }).find("did you mean 'scenes'"),
            std::string::npos);
}

TEST_F(CheckData, SamePictureInTwoClasses_IsAConflict) {
  for (std::uint64_t i = 0; i < 4; ++i) put_image("cat/" + std::to_string(i) + ".png", i);
  put_image("dog/9.png", 9);
  fs::copy_file(file("cat/2.png"), file("dog/x.png"));
  const CheckReport report = checked();
  ASSERT_EQ(report.copies.size(), 1U);
  EXPECT_TRUE(report.copies[0].in_several_classes());
  EXPECT_FALSE(report.copies[0].in_several_parts());
  EXPECT_TRUE(report.copies[0].is_identical());
  EXPECT_EQ(report.parts, std::vector<std::string>{""});
  EXPECT_EQ(report.classes[1].images, std::vector<std::int64_t>{2});
}

TEST_F(CheckData, FilesThatAreNotRead_AreListedByReason) {
  put_image("train/a/1.png", 1);
  put_image("train/b/2.png", 2);
  put_image("test/a/3.png", 3);
  put_image("train/loose.png", 4);
  put_bytes(file("train/a/notes.txt"), "text");
  put_bytes(file("train/a/empty.jpg"), "");
  put_bytes(file("train/b/text.png"), "no image");
  const std::vector<std::uint8_t> jpeg = write_jpeg(example_photo(90, 90), {});
  put_bytes(file("test/a/cut\n.jpg"), {reinterpret_cast<const char*>(jpeg.data()), jpeg.size() / 2});
  fs::create_symlink("missing.png", file("test/a/dangling.png"));
  fs::create_directory_symlink("..", file("test/a/loop"));
  const CheckReport report = checked();
  EXPECT_EQ(report.images, 3);
  EXPECT_EQ(report.not_read_counts,
            "6 files: 3 damaged, 1 cannot be opened, 1 outside the class folders, 1 unknown type");
  std::vector<std::string> paths;
  for (const NotReadFile& file : report.not_read) paths.push_back(file.path);
  std::ranges::sort(paths);
  EXPECT_EQ(paths, (std::vector<std::string>{"test/a/cut\n.jpg", "test/a/dangling.png", "train/a/empty.jpg",
                                             "train/a/notes.txt", "train/b/text.png", "train/loose.png"}));
  EXPECT_EQ(report.balance, std::vector<std::string>{"Class 'b' has no images in test."});
}

TEST_F(CheckData, UnreadableFolder_IsListed) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser reads everything";
  put_image("a/1.png", 1);
  put_image("b/2.png", 2);
  chmod(file("b/.").c_str(), 0);
  const CheckReport report = checked();
  chmod((folder_ / "data/b").c_str(), 0755);
  EXPECT_EQ(report.images, 1);
  ASSERT_EQ(report.not_read.size(), 1U);
  EXPECT_EQ(report.not_read[0].path, "b");
  EXPECT_EQ(report.not_read[0].reason, "cannot be read: Permission denied");
}

TEST_F(CheckData, EmptyClassAndImbalance_AreTold) {
  for (std::uint64_t i = 0; i < 20; ++i) put_image("many/" + std::to_string(i) + ".png", i);
  put_image("few/1.png", 31);
  put_image("few/2.png", 32);
  fs::create_directories(folder_ / "data/none");
  EXPECT_EQ(checked().balance,
            (std::vector<std::string>{"Class 'none' has no images.", "'many' has 20 images, 'few' only 2."}));
}

TEST_F(CheckData, ImagesWithoutClasses_AreChecked) {
  put_image("1.png", 1);
  put_image("2.png", 2);
  fs::copy_file(file("1.png"), file("3.png"));
  const CheckReport report = checked();
  EXPECT_EQ(report.images, 3);
  EXPECT_TRUE(report.classes.empty());
  EXPECT_EQ(report.copies.size(), 1U);
}

TEST_F(CheckData, OddSizesAndColors_AreNamed) {
  for (std::uint64_t i = 0; i < 40; ++i) put_image("a/" + std::to_string(100 + i) + ".png", i, 64);
  put_image("a/small.png", 50, 12);
  put_png("a/wide.png", resize(example_photo(64, 64), 64, 300));
  put_png("a/gray.png", to_gray(example_photo(64, 65)));
  put_png("a/black.png", make_image(66, 64, 3));
  const CheckReport report = checked();
  EXPECT_EQ(paths_of(report.sizes.odd),
            (std::vector<std::string>{"a/small.png: 12x12, small for a median of 64",
                                      "a/wide.png: 300x64, sides 4.7 : 1"}));
  EXPECT_EQ(paths_of(report.colors),
            (std::vector<std::string>{"a/black.png: black", "a/gray.png: gray among colored images"}));
  EXPECT_EQ(report.sizes.median_side, 64);
  EXPECT_EQ(report.sizes.frequent[0].images, 40);
}

TEST_F(CheckData, NothingToRead_IsAnError) {
  EXPECT_NE(error_text([&] { checked(); }).find("data: no such folder"), std::string::npos);
  fs::create_directories(folder_ / "data");
  EXPECT_NE(error_text([&] { checked(); }).find("data: expected images that can be read, got none"),
            std::string::npos);
  put_bytes(file("a/1.jpg"), "x");
  EXPECT_NE(error_text([&] { checked(); }).find("got none in 1 file: 1 damaged"), std::string::npos);
  EXPECT_NE(
      error_text([&] { check_data({.data = folder_ / "data/a/1.jpg"}); }).find("expected a folder of images"),
      std::string::npos);
}

TEST_F(CheckData, OneImage_HasNoProblems) {
  put_image("a/1.png", 1);
  const CheckReport report = checked();
  EXPECT_EQ(report.images, 1);
  EXPECT_TRUE(report.copies.empty());
  EXPECT_EQ(report.sizes.max_aspect, 1);
}

TEST_F(CheckData, Pictures_AreMadeForThePage) {
  put_image("a/1.png", 1, 400);
  fs::copy_file(file("a/1.png"), file("a/2.png"));
  const CheckReport report = check_data({.data = folder_ / "data", .pictures = true});
  ASSERT_EQ(report.copies.size(), 1U);
  const std::string& jpeg = report.copies[0].images[1].picture;
  const Image image =
      decode_image({reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size()}, "picture");
  EXPECT_EQ(image.width, 180);
}

// Many files of few pictures: as many reads and comparisons as files, not as pairs of files.
TEST_F(CheckData, ThousandsOfCopies_AreOneGroup) {
  put_image("a/0.png", 1, 24);
  const std::string png = [&] {
    const std::vector<std::uint8_t> bytes = read_bytes(file("a/0.png"));
    return std::string(bytes.begin(), bytes.end());
  }();
  for (int i = 1; i < 1500; ++i)  // bytes after the end of the image make other files of half of them
    put_bytes(file("a/" + std::to_string(i) + ".png"), i % 2 == 0 ? png : png + std::to_string(i));
  std::int64_t compared = 0;
  const CheckReport report = check_data(
      {.data = folder_ / "data", .on_progress = [&](const char* phase, std::int64_t, std::int64_t total) {
         if (std::string_view(phase) == "Comparing") compared = total;
       }});
  ASSERT_EQ(report.copies.size(), 1U);
  EXPECT_EQ(report.copies[0].images.size(), 1500U);
  EXPECT_EQ(count_copies(report).near, 750);
  EXPECT_EQ(compared, 750);
  EXPECT_EQ(report.partly_compared, 0);
}

TEST_F(CheckData, ManyPicturesOfOneHash_AreComparedWithSome) {
  for (int i = 0; i < 40; ++i) {  // plain ones of different colors all have the hash 0
    Image image = make_image(30, 30, 3);
    for (std::size_t k = 0; k < image.pixels.size(); ++k)
      image.pixels[k] = static_cast<std::uint8_t>(k % 3 == 0 ? 6 * i : k % 3 == 1 ? 250 - 6 * i : 100);
    put_png("a/" + std::to_string(100 + i) + ".png", image);
  }
  const CheckReport report = checked();
  EXPECT_TRUE(report.copies.empty());
  EXPECT_EQ(report.partly_compared, 40 - 8);
  EXPECT_EQ(report.colors.size(), 40U);
}

TEST(ContentHash, EveryByteAndTheLength_Matter) {
  std::vector<std::uint8_t> bytes(37, 7);
  std::set<std::uint64_t> hashes{content_hash(bytes)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ++bytes[i];
    hashes.insert(content_hash(bytes));
    --bytes[i];
  }
  bytes.push_back(0);
  hashes.insert(content_hash(bytes));
  EXPECT_EQ(hashes.size(), 39U);
}

}  // namespace
}  // namespace tandem
