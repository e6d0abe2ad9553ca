// The GPU's images against the CPU's: the same bytes, but for cubic rotation, which may be a level off.
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

constexpr std::int64_t set_images = 7;

// Tests draw recipes of their own; what matters is that a seed gives the same ones again.
class Choice {
 public:
  explicit Choice(unsigned seed) : engine_(seed) {}

  int whole(int least, int most) { return std::uniform_int_distribution<int>(least, most)(engine_); }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(engine_);
  }
  AugmentStep rotation(Interpolation interpolation) {
    return random_rotate({real(-400, 0), real(0, 400)}, interpolation);
  }
  // Some reach far beyond the border.
  AugmentStep move(const ImageSize& size) {
    if (whole(0, 1) == 0) {
      const double tilt = real(0, whole(0, 1) == 0 ? 0.3 : 2);
      return random_skew({-tilt, tilt});
    }
    const double far = std::floor(real(0, 1.2) * std::max(size.height, size.width));
    return random_shift({-far, std::floor(far / 3)}, {-std::floor(far / 4), std::floor(far / 3)});
  }
  AugmentStep any(const ImageSize& size) {
    switch (whole(0, 4)) {
      case 0:
        return rotation(Interpolation::linear);
      case 1:
        return rotation(Interpolation::nearest);
      case 2:
        return random_noise({0, real(0, 1)});
      default:
        return move(size);
    }
  }
  Tensor images(const ImageSize& size) {
    std::vector<std::uint8_t> levels(static_cast<std::size_t>(set_images * size.bytes()));
    for (std::uint8_t& level : levels) level = static_cast<std::uint8_t>(whole(0, 255));
    return Tensor::from(levels, {set_images, size.height, size.width, size.channels});
  }
  Tensor samples(std::int64_t count) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(count));
    for (std::int32_t& sample : chosen) sample = whole(0, set_images - 1);
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

  // Both devices on the same batch; the greatest difference may be `tolerance` levels.
  void expect_equal(const Recipe& recipe, const ImageSize& size, std::int64_t count, Choice& choice,
                    int tolerance = 0) {
    const Tensor images = choice.images(size), samples = choice.samples(count);
    const auto seed = static_cast<std::uint64_t>(choice.whole(0, 1 << 30)) << 20 | 12345;
    const std::int64_t epoch = choice.whole(0, 1000);
    const auto augmented = [&](Device device) {
      const Tensor out = Tensor::empty({count, size.height, size.width, size.channels}, DType::u8, device);
      augment_batch(recipe, seed, epoch, images.to(device), samples.to(device), out);
      return out.to_vector<std::uint8_t>();
    };
    const std::vector<std::uint8_t> expected = augmented(cpu_device), found = augmented(cuda_device());
    ASSERT_EQ(found.size(), expected.size());
    std::size_t differing = 0, where = 0;
    int greatest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int difference = std::abs(found[i] - expected[i]);
      if (difference > tolerance && differing++ == 0) where = i;
      greatest = std::max(greatest, difference);
    }
    EXPECT_EQ(differing, 0u) << "recipe '" << to_string(recipe) << "' on " << size.height << "x" << size.width
                             << "x" << size.channels << ", seed " << seed << ", epoch " << epoch << ": image "
                             << where / static_cast<std::size_t>(size.bytes()) << ", byte "
                             << where % static_cast<std::size_t>(size.bytes()) << " first, off by up to "
                             << greatest;
    images_seen_ += count;
  }

  std::int64_t images_seen_ = 0;
};

// Sizes of the kernel for small images and beside its limits: a width of no whole words, a remainder of half
// a group, an image too large for shared memory, sides where coordinates need 64 bits.
constexpr ImageSize sizes[] = {{28, 28, 1}, {32, 32, 1},   {2, 8, 1},     {8, 12, 1},   {12, 20, 1},
                               {64, 64, 1}, {100, 60, 1},  {1, 1, 1},     {1, 28, 1},   {28, 1, 1},
                               {7, 5, 1},   {27, 28, 1},   {33, 31, 1},   {28, 28, 3},  {5, 9, 3},
                               {3, 3, 4},   {128, 128, 1}, {256, 256, 1}, {257, 40, 1}, {40, 300, 3}};

TEST_F(AugmentCuda, TheCommonRecipeGivesTheSameBytes) {
  Choice choice(1);
  for (const ImageSize& size : sizes) expect_equal(all_four(), size, 61, choice);
  // Whole blocks of several images, and a last one that is not full.
  for (const std::int64_t count : {1, 2, 133, 1055, 4001})
    expect_equal(all_four(), {28, 28, 1}, count, choice);
}

// So small that a block takes more images than it has threads.
TEST_F(AugmentCuda, ManyTinyImagesGiveTheSameBytes) {
  Choice choice(10);
  expect_equal(recipe_of({random_rotate({-180, 180})}), {2, 8, 1}, 60000, choice);
}

TEST_F(AugmentCuda, RotationsThenMovesAndNoiseGiveTheSameBytes) {
  Choice choice(2);
  for (int round = 0; round < 120; ++round) {
    std::vector<AugmentStep> steps{choice.rotation(Interpolation::linear)};
    for (int moves = choice.whole(0, 3); moves > 0; --moves)
      steps.push_back(choice.move(sizes[round % std::size(sizes)]));
    if (choice.whole(0, 1) == 1) steps.push_back(random_noise({0, choice.real(0, 1)}));
    expect_equal(recipe_of(steps), sizes[round % std::size(sizes)], 20, choice);
  }
}

TEST_F(AugmentCuda, TenThousandImagesOfAnyRecipesGiveTheSameBytes) {
  Choice choice(3);
  while (images_seen_ < 10000) {
    const ImageSize& size = sizes[choice.whole(0, static_cast<int>(std::size(sizes)) - 1)];
    std::vector<AugmentStep> steps;
    for (int count = choice.whole(0, most_augment_steps / 2); count > 0; --count)
      steps.push_back(choice.any(size));
    expect_equal(recipe_of(steps), size, size.bytes() > 10000 ? 3 : 40, choice);
  }
}

TEST_F(AugmentCuda, LargePhotographsGiveTheSameBytes) {
  Choice choice(4);
  const ImageSize size{200, 300, 3};
  expect_equal(all_four(), size, 5, choice);
  for (int round = 0; round < 10; ++round)
    expect_equal(recipe_of({choice.move(size), choice.rotation(Interpolation::linear), choice.move(size),
                            choice.any(size), choice.any(size)}),
                 size, 3, choice);
}

TEST_F(AugmentCuda, AnglesThatHitPixelsExactlyGiveTheSameBytes) {
  Choice choice(5);
  for (const ImageSize& size : sizes)
    for (const double degrees : {0.0, 90.0, 180.0, 270.0, -90.0, 360.0, 45.0, 1e-9})
      for (const Interpolation interpolation : {Interpolation::nearest, Interpolation::linear})
        expect_equal(recipe_of({random_rotate({degrees, degrees}, interpolation)}), size, 2, choice);
}

TEST_F(AugmentCuda, AnEmptyRecipeCopies) {
  Choice choice(6);
  for (const ImageSize& size : sizes) expect_equal({}, size, 9, choice);
}

TEST_F(AugmentCuda, ExtremesOfNoiseGiveTheSameBytes) {
  Choice choice(7);
  for (const double amount : {0.0, 1.0, 1.0 / 255, 0.5})
    for (const bool rotates : {false, true}) {
      std::vector<AugmentStep> steps;
      if (rotates) steps.push_back(random_rotate({-5, 5}));
      steps.push_back(random_noise({amount, amount}));
      expect_equal(recipe_of(steps), {28, 28, 1}, 50, choice);
      steps.push_back(random_noise({amount, amount}));
      expect_equal(recipe_of(steps), {28, 28, 1}, 50, choice);
    }
}

TEST_F(AugmentCuda, CubicRotationsAreWithinALevel) {
  Choice choice(8);
  for (int round = 0; round < 60; ++round) {
    const ImageSize& size = sizes[round % std::size(sizes)];
    std::vector<AugmentStep> steps;
    if (choice.whole(0, 1) == 1) steps.push_back(choice.move(size));
    steps.push_back(choice.rotation(Interpolation::cubic));
    if (choice.whole(0, 1) == 1) steps.push_back(choice.move(size));
    expect_equal(recipe_of(steps), size, size.bytes() > 10000 ? 3 : 20, choice, 1);
  }
}

// More images than fit in the memory between passes at once. Only the last pass may be a level off.
TEST_F(AugmentCuda, ManyImagesGoThroughSeveralPassesInPortions) {
  Choice choice(9);
  const Recipe recipe = recipe_of({random_rotate({-90, 90}), random_noise({0, 0.2}),
                                   random_rotate({-30, 30}, Interpolation::cubic), random_skew({-1, 1})});
  expect_equal(recipe, {200, 300, 3}, 320, choice, 1);
}

}  // namespace
}  // namespace tandem
