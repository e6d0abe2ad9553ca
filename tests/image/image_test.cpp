#include "tandem/image/image.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(Image, IsBlackAndInterleaved) {
  Image image = make_image(2, 3, 3);
  EXPECT_EQ(image.pixels, std::vector<uint8_t>(18, 0));
  image.at(1, 2, 1) = 7;
  EXPECT_EQ(image.pixels[(1 * 3 + 2) * 3 + 1], 7);
  EXPECT_EQ(image.row(1)[2 * 3 + 1], 7);
}

TEST(Image, ZeroSides_AreAllowed) {
  EXPECT_TRUE(make_image(0, 5, 1).pixels.empty());
  EXPECT_TRUE(make_image(5, 0, 3).pixels.empty());
}

TEST(Image, InvalidSizes_Throw) {
  EXPECT_EQ(error_text([] { make_image(-1, 5, 3); }),
            "[image] expected sides of at least 0, got 5x-1 (width x height)");
  EXPECT_EQ(error_text([] { make_image(2, 2, 4); }), "[image] expected 1 or 3 channels, got 4");
  const int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_NE(error_text([&] { make_image(huge, 1, 3); }).find("do not fit in memory"), std::string::npos);
  EXPECT_NE(error_text([&] { make_image(int64_t(1) << 32, int64_t(1) << 32, 1); }).find("do not fit"),
            std::string::npos);
}

TEST(Image, CropAndCopy_ReturnThePixelsOfTheBox) {
  Image image = make_image(3, 4, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = uint8_t(i);
  const Image box = copy(crop(image, {.x = 1, .y = 1, .width = 2, .height = 2}));
  EXPECT_EQ(box.pixels, (std::vector<uint8_t>{15, 16, 17, 18, 19, 20, 27, 28, 29, 30, 31, 32}));
  EXPECT_EQ(copy(crop(crop(image, {0, 1, 4, 2}), {1, 0, 2, 2})), box) << "a crop of a crop";
  EXPECT_EQ(copy(image), image);
}

TEST(Image, CropOutsideTheImage_Throws) {
  const Image image = make_image(3, 4, 1);
  EXPECT_EQ(error_text([&] {
              crop(image, {2, 0, 3, 1});
            }),
            "[image] expected a box within 4x3 pixels, got 3x1 at (2, 0)");
  for (const PixelBox box : {PixelBox{0, 0, 0, 1}, PixelBox{-1, 0, 2, 2}, PixelBox{0, 2, 1, 2},
                             PixelBox{1, 1, std::numeric_limits<int64_t>::max(), 1}})
    EXPECT_THROW(crop(image, box), Error);
}

TEST(Image, GrayUsesPilsWeights) {
  Image image = make_image(1, 5, 3);
  image.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 12, 200, 77};
  // numpy.asarray(Image.fromarray(...).convert("L"))
  EXPECT_EQ(to_gray(image).pixels, (std::vector<uint8_t>{76, 150, 29, 255, 130}));
  EXPECT_EQ(to_gray(image).channels, 1);
}

TEST(Image, GrayOfGray_IsUnchanged) {
  Image image = make_image(1, 2, 1);
  image.pixels = {3, 250};
  EXPECT_EQ(to_gray(image), image);
}

TEST(Image, RgbOfGray_RepeatsTheChannel) {
  Image image = make_image(1, 2, 1);
  image.pixels = {3, 250};
  EXPECT_EQ(to_rgb(image).pixels, (std::vector<uint8_t>{3, 3, 3, 250, 250, 250}));
  EXPECT_EQ(to_rgb(to_rgb(image)), to_rgb(image));
}

}  // namespace
}  // namespace tandem
