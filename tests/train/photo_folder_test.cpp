// Which photographs of a folder are for training, validation and test.
#include "tandem/train/photo_folder.h"

#include <gtest/gtest.h>

#include "tandem/train/data_list.h"
#include "tandem/train/training_data.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

class PhotoFolders : public testing::Test {
 protected:
  std::filesystem::path root() const { return folder_ / "photos"; }
  Names names(const PhotoFiles& photos) const {
    Names all;
    for (const auto& file : photos.files) all.push_back(file.lexically_relative(root()).string());
    return all;
  }

  TempFolder folder_;
};

TEST_F(PhotoFolders, TrainAlone_HoldsOutEverySixth) {
  write_photos(root() / "train", 7);
  const FoundPhotos found = find_photos(root());
  EXPECT_EQ(found.classes, (Names{"blue", "red"}));
  EXPECT_TRUE(found.held_out);
  EXPECT_FALSE(found.test);
  EXPECT_EQ(names(found.validation), (Names{"train/blue/photo 100.png", "train/blue/photo 106.png",
                                            "train/red/photo 100.png", "train/red/photo 106.png"}));
  EXPECT_EQ(found.train.files.size(), 10u);
  EXPECT_EQ(names(find_test_photos(root(), found.classes, false)), names(found.validation));
}

TEST_F(PhotoFolders, UnlabeledTest_IsCountedOnly) {
  write_photos(root() / "train", 3);
  std::filesystem::create_directories(root() / "test");
  for (unsigned i = 0; i < 5; ++i) save_png(root() / "test" / (std::to_string(i) + ".png"), tinted(true, i));
  const FoundPhotos found = find_photos(root());
  EXPECT_EQ(found.unlabeled_images, 5);
  EXPECT_FALSE(found.test);
  EXPECT_EQ(found.validation.files.size(), 2u);

  TrainOptions options = default_options("cnn", {.photographs = true});
  options.data = root().string();
  options.image_size = 16;
  std::vector<std::string> messages;
  const TrainingData data =
      load_training_data(options, [&](const std::string& line) { messages.push_back(line); });
  EXPECT_EQ(data.train.count(), 4);
  EXPECT_EQ(data.tested_on, "validation");
  EXPECT_EQ(messages.at(1), "Test: " + (root() / "test").string() +
                                " has 5 images without class folders, which training does not use");
}

TEST_F(PhotoFolders, LabeledTest_IsNeverTheValidationSet) {
  write_photos(root() / "train", 7);
  write_photos(root() / "test", 2, 20);
  const FoundPhotos found = find_photos(root());
  ASSERT_TRUE(found.test);
  EXPECT_EQ(found.test->files.size(), 4u);
  EXPECT_TRUE(found.held_out);
  EXPECT_EQ(found.validation.files.size(), 4u);
  EXPECT_EQ(names(find_test_photos(root(), found.classes, true)), names(*found.test));
}

TEST_F(PhotoFolders, ValidationFolder_MayBeCalledValidOrValidation) {
  write_photos(root() / "train", 2);
  write_photos(root() / "valid", 1, 10);
  EXPECT_EQ(find_photos(root()).train.files.size(), 4u);
  EXPECT_EQ(names(find_photos(root()).validation),
            (Names{"valid/blue/photo 110.png", "valid/red/photo 110.png"}));
  std::filesystem::rename(root() / "valid", root() / "validation");
  EXPECT_EQ(find_photos(root()).validation.files.size(), 2u);
}

TEST_F(PhotoFolders, NamesThatAreNotUtf8_StayInValidation) {
  write_photos(root(), 3);
  std::filesystem::rename(find_photos(root()).validation.files[0], root() / "blue" / "a\xFF.png");
  const FoundPhotos found = find_photos(root());
  std::set<std::string> kept;
  for (const auto& file : found.validation.files) kept.insert(listed_name(file.string()));
  EXPECT_EQ(names(find_photos(root(), kept).validation), names(found.validation));
}

TEST_F(PhotoFolders, KeptValidationPhotosAreGone_IsRefused) {
  write_photos(root(), 3);
  const FoundPhotos found = find_photos(root());
  std::set<std::string> kept;
  for (const auto& file : found.validation.files) kept.insert(file.string());
  EXPECT_EQ(names(find_photos(root(), kept).validation), names(found.validation));
  for (const auto& file : found.train.files) kept.insert(file.string());
  EXPECT_EQ(error_text([&] { find_photos(root(), kept); }),
            "[photos] " + root().string() +
                ": expected training photographs, found only those held out for validation");
  EXPECT_EQ(
      error_text([&] {
        find_photos(root(), {"gone.png", "lost.png"});
      }),
      "[photos] " + root().string() +
          ": expected the 2 photographs that were held out for validation when the run began, found none");
}

TEST_F(PhotoFolders, ClassCalledTrain_IsAClass) {
  write_photos(root(), 3, 0, "car", "train");
  const FoundPhotos found = find_photos(root());
  EXPECT_EQ(found.classes, (Names{"car", "train"}));
  EXPECT_EQ(found.validation.files.size(), 2u);
}

TEST_F(PhotoFolders, SkippedFiles_AreCollectedFromEveryPart) {
  write_photos(root() / "train", 2);
  write_photos(root() / "val", 1);
  put_bytes(root() / "train/red/notes.txt", "x");
  put_bytes(root() / "val/loose.jpg", "x");
  const FoundPhotos found = find_photos(root());
  EXPECT_EQ(count_skipped(found.train.skipped), "1 file: 1 unknown type");
  EXPECT_EQ(count_skipped(found.validation.skipped), "1 file: 1 outside the class folders");
}

}  // namespace
}  // namespace tandem
