// The GPU gives the same bytes as the CPU, except for cubic rotation, which may differ by one level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tandem/augment/augment.h"
#include "tests/augment/augment_case.h"

namespace tandem {
namespace {

constexpr std::int64_t image_count = 7;

// Samples recipes, images and indices for the tests, reproducibly from a seed.
class TestSampler {
 public:
  explicit TestSampler(unsigned seed) : engine_(seed) {}

  int integer(int min, int max) { return std::uniform_int_distribution<int>(min, max)(engine_); }
  double real(double min, double max) { return std::uniform_real_distribution<double>(min, max)(engine_); }
  AugmentStep rotation(Interpolation interpolation) {
    return random_rotate({real(-400, 0), real(0, 400)}, interpolation);
  }
  // Some shifts are larger than the image.
  AugmentStep move(const ImageSize& size) {
    if (integer(0, 1) == 0) {
      const double tilt = real(0, integer(0, 1) == 0 ? 0.3 : 2);
      return random_skew({-tilt, tilt});
    }
    const double max_shift = std::floor(real(0, 1.2) * std::max(size.height, size.width));
    return random_shift({-max_shift, std::floor(max_shift / 3)},
                        {-std::floor(max_shift / 4), std::floor(max_shift / 3)});
  }
  AugmentStep any(const ImageSize& size) {
    switch (integer(0, 8)) {
      case 0:
        return rotation(Interpolation::linear);
      case 1:
        return rotation(Interpolation::nearest);
      case 2:
        return random_noise({0, real(0, 1)});
      case 3:
        return random_zoom({real(0.25, 1), real(1, 5)},
                           integer(0, 1) == 0 ? Interpolation::linear : Interpolation::nearest);
      case 4:
        return random_crop({real(0.01, 0.5), real(0.5, 1)});
      case 5:
        return random_flip(0.5);
      case 6:
        return random_blur(0.7, random_kernel(static_cast<std::uint32_t>(integer(0, 1 << 20))));
      default:
        return move(size);
    }
  }
  Tensor images(const ImageSize& size) {
    std::vector<std::uint8_t> levels(static_cast<std::size_t>(image_count * size.bytes()));
    for (std::uint8_t& level : levels) level = static_cast<std::uint8_t>(integer(0, 255));
    return Tensor::from(levels, {image_count, size.height, size.width, size.channels});
  }
  Tensor samples(std::int64_t count) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(count));
    for (std::int32_t& sample : chosen) sample = integer(0, image_count - 1);
    return Tensor::from(chosen, {count});
  }

 private:
  std::mt19937 engine_;
};

Recipe recipe_of(const std::vector<AugmentStep>& steps) {
  Recipe recipe;
  for (const AugmentStep& step : steps) recipe.steps[recipe.count++] = step;
  return recipe;
}

class AugmentCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  }

  // Runs both devices on the same batch; results may differ by up to `tolerance` levels.
  void expect_equal(const Recipe& recipe, const ImageSize& size, std::int64_t count, TestSampler& sampler,
                    int tolerance = 0) {
    const Tensor images = sampler.images(size), samples = sampler.samples(count);
    const auto seed = static_cast<std::uint64_t>(sampler.integer(0, 1 << 30)) << 20 | 12345;
    const std::int64_t epoch = sampler.integer(0, 1000);
    const auto augmented = [&](Device device) {
      const Tensor out = Tensor::empty({count, size.height, size.width, size.channels}, DType::u8, device);
      augment_batch(recipe, seed, epoch, images.to(device), samples.to(device), out);
      return out.to_vector<std::uint8_t>();
    };
    const std::vector<std::uint8_t> expected = augmented(cpu_device), actual = augmented(cuda_device());
    ASSERT_EQ(actual.size(), expected.size());
    std::size_t differing = 0, first = 0;
    int max_difference = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const int difference = std::abs(actual[i] - expected[i]);
      if (difference > tolerance && differing++ == 0) first = i;
      max_difference = std::max(max_difference, difference);
    }
    EXPECT_EQ(differing, 0u) << "recipe '" << to_string(recipe) << "' on " << size.height << "x" << size.width
                             << "x" << size.channels << ", seed " << seed << ", epoch " << epoch << ": image "
                             << first / static_cast<std::size_t>(size.bytes()) << ", byte "
                             << first % static_cast<std::size_t>(size.bytes())
                             << " is the first that differs, by up to " << max_difference;
    images_tested_ += count;
  }

  std::int64_t images_tested_ = 0;
};

// Sizes for the small-image kernel and around its limits: a width that is no multiple of 4, a size that is no
// multiple of 8, an image too large for shared memory, sides for which coordinates need 64 bits.
constexpr ImageSize sizes[] = {{28, 28, 1}, {32, 32, 1},   {2, 8, 1},     {8, 12, 1},   {12, 20, 1},
                               {64, 64, 1}, {100, 60, 1},  {1, 1, 1},     {1, 28, 1},   {28, 1, 1},
                               {7, 5, 1},   {27, 28, 1},   {33, 31, 1},   {28, 28, 3},  {5, 9, 3},
                               {3, 3, 4},   {128, 128, 1}, {256, 256, 1}, {257, 40, 1}, {40, 300, 3}};

TEST_F(AugmentCuda, CommonRecipe_EqualsCpu) {
  TestSampler sampler(1);
  for (const ImageSize& size : sizes) expect_equal(all_operations(), size, 61, sampler);
  // Full blocks of several images, and a last block that is not full.
  for (const std::int64_t count : {1, 2, 133, 1055, 4001})
    expect_equal(all_operations(), {28, 28, 1}, count, sampler);
}

// Images so small that a block processes more images than it has threads.
TEST_F(AugmentCuda, ManyTinyImages_EqualCpu) {
  TestSampler sampler(10);
  expect_equal(recipe_of({random_rotate({-180, 180})}), {2, 8, 1}, 60000, sampler);
}

TEST_F(AugmentCuda, RotationsThenMovesAndNoise_EqualCpu) {
  TestSampler sampler(2);
  for (int round = 0; round < 120; ++round) {
    std::vector<AugmentStep> steps{sampler.rotation(Interpolation::linear)};
    for (int moves = sampler.integer(0, 3); moves > 0; --moves)
      steps.push_back(sampler.move(sizes[round % std::size(sizes)]));
    if (sampler.integer(0, 1) == 1) steps.push_back(random_noise({0, sampler.real(0, 1)}));
    expect_equal(recipe_of(steps), sizes[round % std::size(sizes)], 20, sampler);
  }
}

TEST_F(AugmentCuda, ZoomsAndCrops_EqualCpu) {
  TestSampler sampler(11);
  for (const ImageSize& size : sizes)
    for (const double factor : {0.25, 0.9, 1.0, 1.7, 100.0})
      for (const AugmentStep& step :
           {random_zoom({factor, factor}), random_crop({0.01 * factor, 0.01 * factor})}) {
        expect_equal(recipe_of({step, random_shift({-2, 2}, {-2, 2}), random_noise({0, 0.1})}), size, 20,
                     sampler);
        expect_equal(recipe_of({random_flip(0.5), step}), size, 20, sampler);
      }
}

TEST_F(AugmentCuda, FlipsAndBlurs_EqualCpu) {
  TestSampler sampler(12);
  for (const ImageSize& size : sizes) {
    expect_equal(recipe_of({random_flip(0.5)}), size, 40, sampler);
    expect_equal(recipe_of({alternating_flip(), random_reflected_shift({-2, 2}, {-3, 9})}), size, 40,
                 sampler);
    for (const char* name : {"ring", "sobel1", "sobel3", "sobel4", "1 2; 3 4"})
      expect_equal(recipe_of({random_flip(0.5), random_blur(0.8, blur_kernel(name)), random_skew({-1, 1}),
                              random_flip(0.5), random_noise({0, 0.1})}),
                   size, 10, sampler);
  }
}

TEST_F(AugmentCuda, TenThousandImagesWithRandomRecipes_EqualCpu) {
  TestSampler sampler(3);
  while (images_tested_ < 10000) {
    const ImageSize& size = sizes[sampler.integer(0, static_cast<int>(std::size(sizes)) - 1)];
    std::vector<AugmentStep> steps;
    for (int count = sampler.integer(0, max_augment_steps / 2); count > 0; --count)
      steps.push_back(sampler.any(size));
    expect_equal(recipe_of(steps), size, size.bytes() > 10000 ? 3 : 40, sampler);
  }
}

TEST_F(AugmentCuda, LargePhotographs_EqualCpu) {
  TestSampler sampler(4);
  const ImageSize size{200, 300, 3};
  expect_equal(all_operations(), size, 5, sampler);
  for (int round = 0; round < 10; ++round)
    expect_equal(recipe_of({sampler.move(size), sampler.rotation(Interpolation::linear), sampler.move(size),
                            sampler.any(size), sampler.any(size)}),
                 size, 3, sampler);
}

TEST_F(AugmentCuda, ExactAngles_EqualCpu) {
  TestSampler sampler(5);
  for (const ImageSize& size : sizes)
    for (const double degrees : {0.0, 90.0, 180.0, 270.0, -90.0, 360.0, 45.0, 1e-9})
      for (const Interpolation interpolation : {Interpolation::nearest, Interpolation::linear})
        expect_equal(recipe_of({random_rotate({degrees, degrees}, interpolation)}), size, 2, sampler);
}

TEST_F(AugmentCuda, EmptyRecipe_Copies) {
  TestSampler sampler(6);
  for (const ImageSize& size : sizes) expect_equal({}, size, 9, sampler);
}

TEST_F(AugmentCuda, ExtremeNoise_EqualsCpu) {
  TestSampler sampler(7);
  for (const double amount : {0.0, 1.0, 1.0 / 255, 0.5})
    for (const bool rotation : {false, true}) {
      std::vector<AugmentStep> steps;
      if (rotation) steps.push_back(random_rotate({-5, 5}));
      steps.push_back(random_noise({amount, amount}));
      expect_equal(recipe_of(steps), {28, 28, 1}, 50, sampler);
      steps.push_back(random_noise({amount, amount}));
      expect_equal(recipe_of(steps), {28, 28, 1}, 50, sampler);
    }
}

TEST_F(AugmentCuda, CubicRotations_AreWithinOneLevelOfCpu) {
  TestSampler sampler(8);
  for (int round = 0; round < 60; ++round) {
    const ImageSize& size = sizes[round % std::size(sizes)];
    std::vector<AugmentStep> steps;
    if (sampler.integer(0, 1) == 1) steps.push_back(sampler.move(size));
    steps.push_back(sampler.integer(0, 1) == 1 ? sampler.rotation(Interpolation::cubic)
                                               : random_zoom({0.5, 2}, Interpolation::cubic));
    if (sampler.integer(0, 1) == 1) steps.push_back(sampler.move(size));
    expect_equal(recipe_of(steps), size, size.bytes() > 10000 ? 3 : 20, sampler, 1);
  }
}

// More images than the intermediate buffer holds. Only the last pass may differ by one level.
TEST_F(AugmentCuda, SeveralPassesOverManyImages_AreProcessedInChunks) {
  TestSampler sampler(9);
  const Recipe recipe = recipe_of({random_rotate({-90, 90}), random_noise({0, 0.2}),
                                   random_rotate({-30, 30}, Interpolation::cubic), random_skew({-1, 1})});
  expect_equal(recipe, {200, 300, 3}, 320, sampler, 1);
}

}  // namespace
}  // namespace tandem
