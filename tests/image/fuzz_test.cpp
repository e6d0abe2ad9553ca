// Damaged files: whatever the bytes, a reader returns an image or throws Error. Most useful under asan.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tandem/image/decode.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

class ImageFuzz : public testing::TestWithParam<std::string> {};

TEST_P(ImageFuzz, FlippedAndTruncatedBytes_NeverCrash) {
  if (!can_decode_file(GetParam())) GTEST_SKIP() << "no decoder";
  const std::vector<uint8_t> whole = read_bytes(golden_folder() / GetParam());
  std::mt19937 random(12345);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  int decoded = 0, rejected = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<uint8_t> bytes = whole;
    // Half of the flips hit the headers in the first bytes.
    for (size_t flips = 1 + below(4); flips > 0; --flips) {
      const size_t reach = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
      bytes[below(reach)] = random() % 2 == 0 ? uint8_t(random()) : uint8_t(0xFF * (random() % 2));
    }
    if (round % 4 == 0) bytes.resize(below(bytes.size() + 1));
    try {
      const Image image = decode_image(bytes, "fuzz", {.max_pixels = 200'000});
      EXPECT_EQ(image.pixels.size(), size_t(image.height * image.width * image.channels));
      EXPECT_LE(image.height * image.width, 200'000);
      ++decoded;
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_EQ(decoded + rejected, 400);
  EXPECT_GT(rejected, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, ImageFuzz,
                         testing::Values("jpeg_420.jpg", "jpeg_progressive.jpg", "jpeg_cmyk.jpg",
                                         "exif_6.jpg", "png_rgba.png", "png_palette_alpha.png",
                                         "png_interlaced_rgb.png", "png_rgba_16.png", "exif_6.png",
                                         "bmp_24.bmp", "bmp_palette.bmp", "bmp_1_bit.bmp", "pnm_rgb.ppm",
                                         "pnm_gray.pgm", "tiff_lzw.tif", "tiff_jpeg.tif", "tiff_tiled.tiff",
                                         "tiff_palette.tif", "heic_rgb.heic", "heic_lossy.heic"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace tandem
