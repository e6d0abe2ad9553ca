#include "tandem/data/synthetic/plates.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "tandem/data/image_folder.h"
#include "tandem/files/sha256.h"
#include "tandem/image/decode.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string digest(const Image& image) {
  return sha256_hex({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
}

TEST(Plates, Image_IsAFunctionOfSeedIndexAndClass) {
  std::set<std::string> digests;
  for (const std::uint64_t seed : {1u, 2u})
    for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, first_test_plate})
      for (const bool dirty : {false, true}) {
        const Image image = render_plate(seed, index, dirty, 64);
        EXPECT_EQ(image.height, 64);
        EXPECT_EQ(image.width, 64);
        EXPECT_EQ(image.channels, 3);
        EXPECT_EQ(digest(render_plate(seed, index, dirty, 64)), digest(image));
        digests.insert(digest(image));
      }
  EXPECT_EQ(digests.size(), 12u);
}

// The same bits on every machine and with every compiler.
TEST(Plates, Bits_MatchTheStoredDigest) {
  Sha256 all;
  for (std::uint64_t index = 0; index < 16; ++index)
    for (const bool dirty : {false, true}) all.update(digest(render_plate(1, index, dirty, 120)));
  EXPECT_EQ(all.hex_digest(), "d964bf089b5990892ed50ecc0553989d79875bd4dcddf318f81599fa6a3f4df6");
}

TEST(Plates, Sizes_OddOnesWorkAndOthersThrow) {
  for (const std::int64_t size : {8, 9, 37, 130})
    for (std::uint64_t index = 0; index < 8; ++index) {
      const Image image = render_plate(3, index, index % 2 == 1, size);
      EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(3 * size * size));
    }
  EXPECT_EQ(error_text([] { render_plate(1, 0, false, 7); }),
            "[plates] expected a side of 8 to 4096 pixels, got 7");
  EXPECT_EQ(error_text([] { render_plate(1, 0, false, 5000); }),
            "[plates] expected a side of 8 to 4096 pixels, got 5000");
}

std::array<double, 3> mean_color(const Image& image) {
  std::array<double, 3> sum{};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) sum[i % 3] += image.pixels[i];
  for (double& one : sum) one /= static_cast<double>(image.pixels.size()) / 3;
  return sum;
}

// How much neighboring pixels differ in the middle of the image, where the plate is.
double roughness(const Image& image) {
  double sum = 0;
  const std::int64_t from = image.height * 3 / 10, to = image.height * 7 / 10;
  for (std::int64_t y = from; y < to; ++y)
    for (std::int64_t x = from; x < to; ++x)
      sum += std::abs(image.at(y, x, 1) - image.at(y + 2, x, 1)) +
             std::abs(image.at(y, x, 1) - image.at(y, x + 2, 1));
  return sum / static_cast<double>((to - from) * (to - from));
}

TEST(Plates, Dirt_ChangesTheTextureButNotTheMeanColor) {
  constexpr int count = 60;
  std::array<double, 3> sum[2] = {}, squares[2] = {};
  double rough[2] = {};
  for (int i = 0; i < count; ++i)
    for (const int dirty : {0, 1}) {
      const Image image = render_plate(5, static_cast<std::uint64_t>(i), dirty == 1, 96);
      const auto mean = mean_color(image);
      for (std::size_t c = 0; c < 3; ++c) {
        sum[dirty][c] += mean[c];
        squares[dirty][c] += mean[c] * mean[c];
      }
      rough[dirty] += roughness(image);
    }
  EXPECT_GT(rough[1], 1.3 * rough[0]);
  for (std::size_t c = 0; c < 3; ++c) {
    const double clean = sum[0][c] / count, dirty = sum[1][c] / count;
    const double spread = std::sqrt(squares[0][c] / count - clean * clean);
    EXPECT_LT(std::abs(clean - dirty), 0.6 * spread) << "channel " << c;
    EXPECT_GT(spread, 15);
  }
}

TEST(Plates, WritePlates_MakesAnImageFolder) {
  const TempFolder folder;
  write_plates(folder / "p", {.train = 3, .test = 5, .size = 32});
  const ImageFolder train = scan_image_folder(folder / "p/train"),
                    test = scan_image_folder(folder / "p/test");
  EXPECT_EQ(train.classes, (std::vector<std::string>{"cleaned", "dirty"}));
  EXPECT_EQ(train.labels, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(test.labels, (std::vector<std::int32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(load_image(folder / "p/train/dirty/dirty-000002.png"), render_plate(1, 2, true, 32));
  EXPECT_EQ(load_image(folder / "p/test/dirty/dirty-000003.png"),
            render_plate(1, first_test_plate + 3, true, 32));
  EXPECT_EQ(
      error_text([&] { write_plates(folder / "p", {}); }),
      "[plates] " + (folder / "p").string() + " is not empty: expected a new or empty folder to write to");
  put_bytes(folder / "file", "x");
  EXPECT_EQ(
      error_text([&] { write_plates(folder / "file" / "p", {.train = 1, .test = 0}); }),
      "[plates] cannot make the folder " + (folder / "file/p/train/cleaned").string() + ": Not a directory");
}

}  // namespace
}  // namespace tandem
