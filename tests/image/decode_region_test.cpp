// decode_region() returns exactly the pixels of decode_image(), for every format, kind of JPEG and box.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tests/image/jpeg_writer.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

// Small boxes, large ones, and those that touch the borders.
PixelBox random_box(int64_t height, int64_t width, std::mt19937& random) {
  const auto span = [&](int64_t side) {
    int64_t a = int64_t(random() % uint64_t(side + 1)), b = int64_t(random() % uint64_t(side + 1));
    if (random() % 5 == 0) a = 0;
    if (random() % 5 == 0) b = side;
    if (a > b) std::swap(a, b);
    if (a == b) a == side ? --a : ++b;
    return std::pair{a, b - a};
  };
  const auto [x, box_width] = span(width);
  const auto [y, box_height] = span(height);
  return {x, y, box_width, box_height};
}

std::string to_text(const PixelBox& box) {
  return std::to_string(box.width) + "x" + std::to_string(box.height) + " at " + std::to_string(box.x) +
         ", " + std::to_string(box.y);
}

void expect_regions_equal(const std::vector<uint8_t>& bytes, int boxes, std::mt19937& random,
                          const std::string& name) {
  for (const bool rgb : {false, true}) {
    const LoadOptions options{.rgb = rgb};
    const Image whole = decode_image(bytes, name, options);
    EXPECT_EQ(read_image_info(bytes, name, options), (ImageInfo{whole.height, whole.width, whole.channels}))
        << name;
    EXPECT_TRUE(!rgb || whole == to_rgb(decode_image(bytes, name))) << name;
    for (int i = 0; i < boxes; ++i) {
      const PixelBox box = random_box(whole.height, whole.width, random);
      ASSERT_TRUE(decode_region(bytes, name, box, options) == copy(crop(whole, box)))
          << name << ", " << to_text(box);
    }
  }
}

Image photo(int64_t height, int64_t width, bool gray = false) {
  const Image image = example_photo(height, width);
  return gray ? to_gray(image) : image;
}

struct Factors {
  int h, v;
};

class JpegRegion : public testing::TestWithParam<Factors> {};

TEST_P(JpegRegion, EqualsTheDecodedImage) {
  std::mt19937 random(11);
  const auto [h, v] = GetParam();
  int number = 0;
  for (const bool progressive : {false, true})
    for (const unsigned restart : {0u, 3u})
      for (const auto& [height, width] : {std::pair{131, 157}, std::pair{64, 96}, std::pair{17, 33}}) {
        const JpegKind kind{.h_factor = h,
                            .v_factor = v,
                            .progressive = progressive,
                            .restart_interval = restart,
                            .cmyk = number % 4 == 3 && h * v <= 4,  // an MCU has at most ten blocks
                            .orientation = 1 + number % 8};
        expect_regions_equal(
            write_jpeg(photo(height, width), kind), 15, random,
            std::to_string(h) + "x" + std::to_string(v) + " number " + std::to_string(number));
        ++number;
      }
}

INSTANTIATE_TEST_SUITE_P(ChromaFactors, JpegRegion,
                         testing::Values(Factors{1, 1}, Factors{2, 1}, Factors{2, 2}, Factors{1, 2},
                                         Factors{4, 1}, Factors{4, 2}, Factors{3, 1}, Factors{1, 3},
                                         Factors{2, 4}),
                         [](const auto& test) {
                           return std::to_string(test.param.h) + "x" + std::to_string(test.param.v);
                         });

TEST(JpegRegions, GrayFiles_EqualTheDecodedImage) {
  std::mt19937 random(12);
  for (const int factor : {1, 2})
    for (const bool progressive : {false, true})
      expect_regions_equal(write_jpeg(photo(99, 75, true),
                                      {.h_factor = factor, .v_factor = factor, .progressive = progressive}),
                           40, random, "gray");
}

TEST(JpegRegions, OnePixelWideFiles_EqualTheDecodedImage) {
  std::mt19937 random(13);
  for (const auto& [height, width] :
       {std::pair{1, 1}, std::pair{1, 5000}, std::pair{5000, 1}, std::pair{2, 3}})
    expect_regions_equal(write_jpeg(photo(height, width), {}), 20, random, "thin");
}

TEST(Region, EveryGoldenFile_EqualsTheDecodedImage) {
  std::mt19937 random(14);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    const std::string name = entry.path().filename().string();
    if (!can_decode_file(name)) continue;
    expect_regions_equal(read_bytes(entry.path()), 10, random, name);
    ++files;
  }
  EXPECT_GE(files, 40);
}

TEST(Region, BoxOutsideTheImage_Throws) {
  const std::vector<uint8_t> jpeg = read_bytes(golden_folder() / "exif_6.jpg");  // 24 high, 16 wide
  EXPECT_EQ(error_text([&] { decode_region(jpeg, "x", {.x = 0, .y = 0, .width = 17, .height = 2}); }),
            "[image] expected a box within 16x24 pixels, got 17x2 at (0, 0)");
  EXPECT_NO_THROW(decode_region(jpeg, "x", {.x = 0, .y = 0, .width = 16, .height = 24}));
  const std::vector<uint8_t> png = read_bytes(golden_folder() / "png_rgb.png");
  EXPECT_THROW(decode_region(png, "x", {.x = 0, .y = 29, .width = 1, .height = 1}), Error);
  EXPECT_THROW(decode_scaled(png, "x", {.x = 0, .y = 0, .width = 0, .height = 1}, 8, 8), Error);
}

TEST(Region, TruncatedFile_Throws) {
  for (const bool progressive : {false, true}) {
    const std::vector<uint8_t> jpeg = write_jpeg(photo(128, 128), {.progressive = progressive});
    const PixelBox top{0, 0, 64, 8};
    EXPECT_NO_THROW(decode_region(jpeg, "x", top));
    for (size_t missing = 1; missing < jpeg.size(); missing += 1 + missing / 3) {
      const std::span<const uint8_t> cut(jpeg.data(), jpeg.size() - missing);
      EXPECT_THROW(decode_region(cut, "x", top), Error) << missing;
    }
  }
}

TEST(Region, DamageAboveTheBox_Throws) {
  std::vector<uint8_t> jpeg = write_jpeg(photo(256, 256), {.restart_interval = 16});
  size_t restart = 600;  // past the tables
  while (jpeg[restart] != 0xFF || jpeg[restart + 1] < 0xD0 || jpeg[restart + 1] > 0xD7) ++restart;
  jpeg.erase(jpeg.begin() + long(restart), jpeg.begin() + long(restart) + 40);
  EXPECT_THROW(decode_image(jpeg, "x"), Error);
  EXPECT_THROW(decode_region(jpeg, "x", {.x = 0, .y = 200, .width = 10, .height = 10}), Error);
}

TEST(Scaled, UsesTheSmallestScaleThatIsLargeEnough) {
  const std::vector<uint8_t> jpeg = write_jpeg(photo(400, 600), {});
  const PixelBox whole{0, 0, 600, 400};
  const auto size_at = [&](int64_t height, int64_t width) {
    const Image image = decode_scaled(jpeg, "x", whole, height, width);
    return std::pair{image.height, image.width};
  };
  EXPECT_EQ(size_at(50, 75), std::pair(int64_t(50), int64_t(75)));
  EXPECT_EQ(size_at(51, 75), std::pair(int64_t(100), int64_t(150)));
  EXPECT_EQ(size_at(50, 151), std::pair(int64_t(200), int64_t(300)));
  EXPECT_EQ(size_at(201, 10), std::pair(int64_t(400), int64_t(600)));
  EXPECT_EQ(size_at(9000, 9000), std::pair(int64_t(400), int64_t(600)));
  EXPECT_EQ(size_at(0, 0), std::pair(int64_t(400), int64_t(600)));
}

TEST(Scaled, Box_EqualsTheCropOfTheScaledImage) {
  std::mt19937 random(15);
  for (const int orientation : {1, 3, 6, 7})
    for (const Factors& factors :
         {Factors{1, 1}, Factors{2, 1}, Factors{2, 2}, Factors{1, 2}, Factors{4, 1}}) {
      const std::vector<uint8_t> jpeg = write_jpeg(
          photo(208, 320), {.h_factor = factors.h, .v_factor = factors.v, .orientation = orientation});
      const ImageInfo info = read_image_info(jpeg, "x");
      for (const int64_t scale : {1, 2, 4, 8}) {
        const Image whole = decode_scaled(jpeg, "x", {0, 0, info.width, info.height}, info.height * scale / 8,
                                          info.width * scale / 8);
        for (int i = 0; i < 6; ++i) {
          // Multiples of 8 are whole pixels at every scale.
          PixelBox box = random_box(info.height / 8, info.width / 8, random);
          box = {8 * box.x, 8 * box.y, 8 * box.width, 8 * box.height};
          const PixelBox scaled{box.x * scale / 8, box.y * scale / 8, box.width * scale / 8,
                                box.height * scale / 8};
          EXPECT_TRUE(decode_scaled(jpeg, "x", box, scaled.height, scaled.width) == copy(crop(whole, scaled)))
              << to_text(box) << " at " << scale << ", orientation " << orientation;
        }
      }
    }
}

TEST(Scaled, IsCloseToTheAveragedRegion) {
  const std::vector<uint8_t> jpeg = write_jpeg(photo(256, 256), {.h_factor = 1, .v_factor = 1});
  const PixelBox box{.x = 13, .y = 22, .width = 201, .height = 179};
  const Image small = decode_scaled(jpeg, "x", box, 40, 40), full = decode_region(jpeg, "x", box);
  EXPECT_EQ(small.width, 51);  // columns 3 (of 13 / 4) to 54 (of 214 / 4, rounded up)
  EXPECT_EQ(small.height, 46);
  double difference = 0;
  for (int64_t y = 2; y < 43; ++y)
    for (int64_t x = 2; x < 48; ++x) {
      double mean = 0;
      for (int64_t i = 0; i < 16; ++i) mean += full.at(4 * y + i / 4 - 2, 4 * x + i % 4 - 1, 1) / 16.0;
      difference += std::abs(mean - small.at(y, x, 1));
    }
  EXPECT_LT(difference / (41 * 46), 2.0);
}

TEST(Scaled, SubsampledChroma_IsRepeated) {
  const PixelBox box{.x = 13, .y = 22, .width = 101, .height = 79};
  const std::vector<uint8_t> full = write_jpeg(photo(128, 128), {.h_factor = 1, .v_factor = 1});
  EXPECT_EQ(decode_scaled(full, "x", box, 79, 101), decode_region(full, "x", box));
  const std::vector<uint8_t> halved = write_jpeg(photo(128, 128), {.h_factor = 2, .v_factor = 2});
  const Image repeated = decode_scaled(halved, "x", box, 79, 101), exact = decode_region(halved, "x", box);
  EXPECT_NE(repeated, exact);
  EXPECT_EQ(decode_scaled(halved, "x", box, 0, 0), exact);
  double difference = 0;
  for (size_t i = 0; i < exact.pixels.size(); ++i)
    difference += std::abs(int(repeated.pixels[i]) - int(exact.pixels[i]));
  EXPECT_LT(difference / double(exact.pixels.size()), 4.0);
}

TEST(Scaled, OtherFormats_EqualTheRegion) {
  const std::vector<uint8_t> png = read_bytes(golden_folder() / "png_rgb.png");
  const PixelBox box{.x = 1, .y = 2, .width = 30, .height = 20};
  EXPECT_EQ(decode_scaled(png, "x", box, 2, 2), decode_region(png, "x", box));
}

}  // namespace
}  // namespace tandem
