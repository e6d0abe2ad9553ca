#include "tandem/data/image_set.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/core/error_text.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

// `count` images of 2×3 pixels whose bytes count up, with labels 0, 1, 2, 0, …
ImageSet small_set(std::int64_t count) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * 6));
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(static_cast<std::int32_t>(i % 3));
  return {.images = Tensor::from(pixels, {count, 2, 3, 1}),
          .labels = Tensor::from(labels, {count}),
          .classes = {"a", "b", "c"}};
}

TEST(ImageSet, Sizes) {
  const ImageSet set = small_set(5);
  EXPECT_EQ(set.count(), 5);
  EXPECT_EQ(set.image_size(), 6);
  EXPECT_EQ(ImageSet{}.count(), 0);
  EXPECT_EQ(ImageSet{}.image_size(), 0);
  EXPECT_EQ(small_set(0).image_size(), 0);
}

TEST(ImageSet, Slice_SharesMemory) {
  const ImageSet set = small_set(5);
  const ImageSet part = set.slice(1, 4);
  EXPECT_EQ(part.count(), 3);
  EXPECT_EQ(part.images.bytes(), set.images.bytes() + 6);
  EXPECT_EQ(part.labels.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 0}));
  EXPECT_EQ(part.images.to_vector<std::uint8_t>().front(), 6);
  EXPECT_EQ(part.classes, set.classes);
  EXPECT_EQ(set.slice(5, 5).count(), 0);
  EXPECT_EQ(ImageSet{}.slice(0, 0).count(), 0);
}

TEST(ImageSet, Slice_OutsideTheSet_Throws) {
  const ImageSet set = small_set(5);
  EXPECT_EQ(error_text([&] { (void)set.slice(2, 6); }),
            "[image set] expected a range of images within 0 to 5, got 2 to 6");
  EXPECT_NE(error_text([&] { (void)set.slice(-1, 2); }), "");
  EXPECT_NE(error_text([&] { (void)set.slice(3, 2); }), "");
}

TEST(ImageSet, To_MovesImagesAndLabels) {
  for (const Device device : test_devices()) {
    const ImageSet set = small_set(5).to(device);
    EXPECT_EQ(set.images.device(), device);
    EXPECT_EQ(set.labels.device(), device);
    EXPECT_EQ(set.images.to_vector<std::uint8_t>(), small_set(5).images.to_vector<std::uint8_t>());
    EXPECT_EQ(set.classes.size(), 3u);
    EXPECT_NO_THROW(check_image_set(set, "small"));
  }
  EXPECT_EQ(ImageSet{}.to(cpu_device).count(), 0);
}

TEST(ImageSet, CheckImageSet_NamesTheProblem) {
  EXPECT_NO_THROW(check_image_set(small_set(5), "small"));
  EXPECT_NO_THROW(check_image_set(small_set(0), "small"));
  EXPECT_EQ(error_text([] { check_image_set({}, "small"); }), "[small] expected images and labels, got none");

  ImageSet set = small_set(5);
  set.labels = Tensor::from(std::vector<std::int32_t>{0, 1, 3, 0, 9}, {5});
  EXPECT_EQ(error_text([&] { check_image_set(set, "small"); }),
            "[small] expected labels from 0 to 2, got 3 for image 2");
  set.labels = Tensor::from(std::vector<std::int32_t>{0, -1, 0, 0, 0}, {5});
  EXPECT_EQ(error_text([&] { check_image_set(set, "small"); }),
            "[small] expected labels from 0 to 2, got -1 for image 1");
  set.labels = Tensor::from(std::vector<std::int32_t>{0, 1, 2, 0}, {4});
  EXPECT_EQ(error_text([&] { check_image_set(set, "small"); }),
            "[small] expected a label for each image, got 4 for 5 images");
  set.labels = Tensor::from(std::vector<std::int64_t>{0, 1, 2, 0, 1}, {5});
  EXPECT_NE(error_text([&] { check_image_set(set, "small"); }).find("expected i32 labels"),
            std::string::npos);

  set = small_set(5);
  set.images = set.images.reshape({5, 6});
  EXPECT_NE(error_text([&] { check_image_set(set, "small"); }).find("expected u8 images"), std::string::npos);
  set = small_set(5);
  set.classes.clear();
  EXPECT_NE(error_text([&] { check_image_set(set, "small"); }).find("at least one class"), std::string::npos);
}

}  // namespace
}  // namespace tandem
