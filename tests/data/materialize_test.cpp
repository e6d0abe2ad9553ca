#include "tandem/data/loader/materialize.h"

#include <gtest/gtest.h>

#include "tests/core/error_text.h"
#include "tests/data/dataset_cases.h"
#include "tests/data/photo_cases.h"

namespace tandem {
namespace {

TEST(Materialize, ImageDataset_SharesItsMemory) {
  const ImageDataset dataset(small_set(5));
  EXPECT_EQ(materialize(dataset).images.bytes(), dataset.images().images.bytes());
}

TEST(Materialize, OwnDataset_HasItsImagesInOrder) {
  const NoiseDataset dataset(50);
  const ImageSet expected = dataset.in_memory(), set = materialize(dataset);
  EXPECT_EQ(set.images.shape(), expected.images.shape());
  EXPECT_EQ(set.images.to_vector<std::uint8_t>(), expected.images.to_vector<std::uint8_t>());
  EXPECT_EQ(set.labels.to_vector<std::int32_t>(), expected.labels.to_vector<std::int32_t>());
  EXPECT_EQ(set.classes, expected.classes);
  const PhotoSet resized = materialize_named(dataset, evaluation_transform(6));
  EXPECT_EQ(resized.images.images.shape(), (Shape{50, 6, 6, 3}));
  EXPECT_EQ(resized.names[49], "sample 49");
}

TEST(Materialize, UnreadablePhotographs_AreLeftOutOrThrow) {
  const PhotoFolder folder(8, {0, 3});
  const Transform transform = evaluation_transform(5, PhotoFit::center);
  for (const bool decoded : {true, false}) {
    const PhotoSet set = materialize_named(PhotoDataset(folder.store(decoded), {"x", "y", "z"}), transform);
    ASSERT_EQ(set.images.count(), 6);
    ASSERT_EQ(set.bad.size(), 2U);
    EXPECT_EQ(set.bad[1].sample, 3);
    EXPECT_EQ(set.bad[1].name, folder.files[3].string());
    EXPECT_NE(set.bad[1].reason, "");
    EXPECT_EQ(set.names[2], folder.files[4].string());
    EXPECT_EQ(set.images.labels.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 1, 2, 0, 1}));
    PhotoScratch scratch;
    std::vector<std::uint8_t> expected(75);
    transform_photo(transform.photo(), RandomKey{}, to_rgb(load_image(folder.files[7])), expected.data(),
                    scratch);
    EXPECT_EQ(set.images.images.slice(0, 5, 6).to_vector<std::uint8_t>(), expected);
  }
  const PhotoDataset strict(folder.store(false, OnBadImage::fail), {"x", "y", "z"});
  EXPECT_EQ(error_text([&] {
              materialize(strict, transform);
            }).rfind("[data] " + folder.files[0].string() + ": ", 0),
            0U);
}

TEST(Materialize, WhatIsWrongWithASample_IsOneErrorThatNamesIt) {
  EXPECT_EQ(error_text([] { materialize(FaultyDataset("throws")); }), "[data] shot 5: the camera is off");
  EXPECT_EQ(error_text([] { materialize(FaultyDataset("label")); }),
            "[data] shot 5: expected a label from 0 to 2, got 3");
  EXPECT_NE(error_text([] { materialize(FaultyDataset("size")); }).find("10x8 with 1 channel like the first"),
            std::string::npos);
  EXPECT_EQ(error_text([] { materialize(NoiseDataset(0)); }),
            "[data] expected 1 to 2147483647 samples, got 0");
}

TEST(Materialize, MoreThanHalfOfTheMemory_Throws) {
  struct Huge : NoiseDataset {
    Huge() : NoiseDataset(2147483647) {}
  };
  const std::string text = error_text([] { materialize(Huge(), evaluation_transform(4096)); });
  EXPECT_EQ(text.rfind("[data] expected at most ", 0), 0U) << text;
  EXPECT_NE(text.find("images of 4096x4096, as many as fit into half of the free memory, got 2147483647"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tandem
