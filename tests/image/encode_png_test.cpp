#include "tandem/image/encode_png.h"

#include <gtest/gtest.h>

#include <random>

#include "tandem/image/decode.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

Image noise_image(int64_t height, int64_t width, int channels) {
  Image image = make_image(height, width, channels);
  std::mt19937 random(7);
  for (uint8_t& value : image.pixels) value = uint8_t(random());
  return image;
}

TEST(EncodePng, DecodedAgain_IsTheSameImage) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {7, 1}, {33, 65}, {300, 200}, {3, 5000}})
    for (const int channels : {1, 3}) {
      const Image image = noise_image(height, width, channels);
      EXPECT_EQ(decode_image(encode_png(image), "x"), image) << height << "x" << width << "x" << channels;
    }
}

TEST(EncodePng, EmptyImage_Throws) {
  EXPECT_NE(error_text([] { encode_png(make_image(0, 3, 1)); }).find("[encode_png] expected sides of 1"),
            std::string::npos);
}

TEST(SavePng, ExistingFile_IsReplaced) {
  const TempFolder folder;
  save_png(folder / "a.png", noise_image(9, 9, 3));
  const Image second = noise_image(4, 5, 1);
  save_png(folder / "a.png", second);
  EXPECT_EQ(load_image(folder / "a.png"), second);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(SavePng, FullDevice_ThrowsWithThePath) {
  EXPECT_EQ(error_text([] { save_png("/dev/full", noise_image(3, 3, 3)); }),
            "[save_png] cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace tandem
