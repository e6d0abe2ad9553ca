#include "tandem/image/resize_area.h"

#include <gtest/gtest.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

Image gray(int64_t height, int64_t width, std::vector<uint8_t> pixels) {
  return {height, width, 1, std::move(pixels)};
}

TEST(ResizeArea, SameSize_IsUnchanged) {
  const Image image = gray(2, 3, {1, 2, 3, 250, 251, 252});
  EXPECT_EQ(resize_area(image, 2, 3), image);
}

TEST(ResizeArea, HalfSize_IsTheMeanOfFourPixels) {
  EXPECT_EQ(resize_area(gray(2, 4, {0, 10, 100, 100, 20, 30, 100, 101}), 1, 2).pixels,
            (std::vector<uint8_t>{15, 100}));
}

TEST(ResizeArea, PartlyCoveredPixels_AreWeightedByArea) {
  // Three to two: the middle one is shared.
  EXPECT_EQ(resize_area(gray(1, 3, {0, 90, 240}), 1, 2).pixels, (std::vector<uint8_t>{30, 190}));
}

TEST(ResizeArea, Enlarging_RepeatsPixels) {
  EXPECT_EQ(resize_area(gray(1, 2, {7, 200}), 2, 4).pixels,
            (std::vector<uint8_t>{7, 7, 200, 200, 7, 7, 200, 200}));
}

TEST(ResizeArea, ConstantImage_StaysConstant) {
  Image image = make_image(37, 53, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = uint8_t(i % 3 == 0 ? 255 : i % 3 == 1 ? 128 : 1);
  for (const auto& [height, width] : {std::pair{1, 1}, {5, 7}, {36, 54}, {100, 3}}) {
    const Image out = resize_area(image, height, width);
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        ASSERT_EQ(out.at(y, x, 0), 255);
        ASSERT_EQ(out.at(y, x, 1), 128);
        ASSERT_EQ(out.at(y, x, 2), 1);
      }
  }
}

TEST(ResizeArea, EmptySides_Throw) {
  EXPECT_EQ(error_text([] { resize_area(make_image(2, 3, 1), 0, 4); }),
            "[resize_area] expected sides of at least 1, got 3x2 to 4x0");
}

}  // namespace
}  // namespace tandem
