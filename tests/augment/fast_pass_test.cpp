// The SIMD path against the plain one: the same bits, whatever the size, the moves and the noise.
#include "tandem/augment/fast_pass.h"

#include <gtest/gtest.h>

#include "tests/augment/augment_case.h"

namespace tandem {
namespace {

struct Both {
  Levels plain, fast;
};

Both run_both(const Recipe& recipe, const ImageSize& size, const DrawKey& key, const Levels& image,
              AugmentScratch& scratch) {
  const std::vector<DrawnStep> drawn = draw_steps(recipe, size, key);
  Both result{image, image};
  for (int begin = 0; begin < recipe.count;) {
    PassWork work{.pass = pass_from(recipe, begin), .steps = drawn.data(), .size = size, .key = key};
    const Both from = result;
    work.in = from.plain.data();
    work.out = result.plain.data();
    run_pass(work, scratch);
    work.in = from.fast.data();
    work.out = result.fast.data();
    run_fast_pass(work, scratch);
    begin = work.pass.end;
  }
  return result;
}

TEST(FastPass, EqualsThePlainPassForEverySmallWidth) {
  AugmentScratch scratch;  // one for all: what an image leaves behind must not show in the next
  for (int width = 1; width <= 70; ++width) {
    const ImageSize size{.height = 1 + width * 29 % 37, .width = width};
    for (std::uint32_t i = 0; i < 12; ++i) {
      const Recipe recipe = random_recipe(5000 + 100 * static_cast<std::uint32_t>(width) + i, false);
      const DrawKey key{.seed = 1, .epoch = i, .sample = static_cast<std::uint32_t>(width)};
      const Both both = run_both(recipe, size, key, random_levels(size, i), scratch);
      ASSERT_EQ(both.fast, both.plain) << to_string(recipe) << " on " << size.height << 'x' << size.width;
    }
  }
}

TEST(FastPass, EqualsThePlainPassForAllFourOperations) {
  AugmentScratch scratch;
  const ImageSize size{.height = 28, .width = 28};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const Both both =
        run_both(all_four(), size, {.seed = 2, .sample = i}, random_levels(size, i % 20), scratch);
    ASSERT_EQ(both.fast, both.plain) << i;
  }
}

TEST(FastPass, EqualsThePlainPassForRightAnglesAndTheLargestSmallImages) {
  AugmentScratch scratch;
  for (const ImageSize& size : {ImageSize{256, 256, 1}, ImageSize{255, 13, 1}, ImageSize{31, 256, 1},
                                ImageSize{28, 28, 1}, ImageSize{257, 40, 1}, ImageSize{1, 1, 1}})
    for (const double degrees : {0.0, 45.0, 90.0, 180.0, 270.0, -90.0, 36000.0, 33.0, 141.5, -1.0}) {
      const Recipe recipe = compose(
          {random_shift({1, 1}, {-1, -1}), random_rotate({degrees, degrees}), random_skew({0.1, 0.1})});
      const Both both = run_both(recipe, size, {}, random_levels(size, 7), scratch);
      ASSERT_EQ(both.fast, both.plain) << size.height << 'x' << size.width << " by " << degrees;
    }
}

TEST(FastPass, NoiseEqualsThePlainNoiseForEveryAmountAndLength) {
  AugmentScratch scratch;
  for (int bytes = 1; bytes < 10000; bytes += bytes < 600 ? 1 : 997) {
    const ImageSize size{.height = 1, .width = bytes};
    const double amount = bytes % 11 / 10.0;
    const Both both = run_both(compose({random_noise({amount, amount})}), size, {.seed = 3},
                               random_levels(size, 1), scratch);
    ASSERT_EQ(both.fast, both.plain) << bytes;
  }
}

}  // namespace
}  // namespace tandem
