// The SIMD version gives the same bits as the scalar one for every size, move and noise.
#include "tandem/augment/fused_pass_simd.h"

#include <gtest/gtest.h>

#include "tests/augment/augment_case.h"

namespace tandem {
namespace {

struct Both {
  Levels scalar, simd;
};

Both run_both(const Recipe& recipe, const ImageSize& size, const RandomKey& key, const Levels& image,
              AugmentScratch& scratch) {
  const std::vector<SampledStep> steps = sample_steps(recipe, size, key);
  Both result{image, image};
  for (int begin = 0; begin < recipe.count;) {
    detail::FusedPassParams params{.recipe = &recipe,
                                   .pass = detail::fused_pass_at(recipe, begin),
                                   .steps = steps.data(),
                                   .size = size,
                                   .key = key};
    const Both from = result;
    params.in = from.scalar.data();
    params.out = result.scalar.data();
    detail::run_fused_pass(params, scratch);
    params.in = from.simd.data();
    params.out = result.simd.data();
    detail::run_fused_pass_simd(params, scratch);
    begin = params.pass.end;
  }
  return result;
}

TEST(FusedPassSimd, EverySmallWidth_EqualsScalar) {
  AugmentScratch scratch;  // shared: stale contents must not affect the next image
  for (int width = 1; width <= 70; ++width) {
    const ImageSize size{.height = 1 + width * 29 % 37, .width = width};
    for (std::uint32_t i = 0; i < 12; ++i) {
      const Recipe recipe = random_recipe(5000 + 100 * static_cast<std::uint32_t>(width) + i, false);
      const RandomKey key{.seed = 1, .epoch = i, .sample = static_cast<std::uint32_t>(width)};
      const Both both = run_both(recipe, size, key, random_levels(size, i), scratch);
      ASSERT_EQ(both.simd, both.scalar) << to_string(recipe) << " on " << size.height << 'x' << size.width;
    }
  }
}

TEST(FusedPassSimd, AllOperations_EqualScalar) {
  AugmentScratch scratch;
  const ImageSize size{.height = 28, .width = 28};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const Both both =
        run_both(all_operations(), size, {.seed = 2, .sample = i}, random_levels(size, i % 20), scratch);
    ASSERT_EQ(both.simd, both.scalar) << i;
  }
}

TEST(FusedPassSimd, RightAnglesAndLargestSmallImages_EqualScalar) {
  AugmentScratch scratch;
  for (const ImageSize& size : {ImageSize{256, 256, 1}, ImageSize{255, 13, 1}, ImageSize{31, 256, 1},
                                ImageSize{28, 28, 1}, ImageSize{257, 40, 1}, ImageSize{1, 1, 1}})
    for (const double degrees : {0.0, 45.0, 90.0, 180.0, 270.0, -90.0, 36000.0, 33.0, 141.5, -1.0}) {
      const Recipe recipe = compose(
          {random_shift({1, 1}, {-1, -1}), random_rotate({degrees, degrees}), random_skew({0.1, 0.1})});
      const Both both = run_both(recipe, size, {}, random_levels(size, 7), scratch);
      ASSERT_EQ(both.simd, both.scalar) << size.height << 'x' << size.width << " by " << degrees;
    }
}

// Coordinates up to one and a half images outside, in 32 bits.
TEST(FusedPassSimd, ZoomsAndCrops_EqualScalar) {
  AugmentScratch scratch;
  for (const ImageSize& size : {ImageSize{256, 256, 1}, ImageSize{255, 13, 1}, ImageSize{31, 256, 1},
                                ImageSize{28, 28, 1}, ImageSize{257, 40, 1}, ImageSize{1, 1, 1}})
    for (const double factor : {0.25, 0.3, 0.99, 1.0, 1.5, 17.0, 100.0})
      for (const AugmentStep& step :
           {random_zoom({factor, factor}), random_crop({0.01 * factor, 0.01 * factor})}) {
        const Recipe recipe =
            compose({random_flip(0.5), step, random_skew({0.1, 0.1}), random_noise({0, 0.1})});
        for (std::uint32_t i = 0; i < 4; ++i) {
          const Both both = run_both(recipe, size, {.sample = i}, random_levels(size, 7), scratch);
          ASSERT_EQ(both.simd, both.scalar)
              << to_string(recipe) << " on " << size.height << 'x' << size.width;
        }
      }
}

TEST(FusedPassSimd, NoiseOfEveryAmountAndLength_EqualsScalar) {
  AugmentScratch scratch;
  for (int bytes = 1; bytes < 10000; bytes += bytes < 600 ? 1 : 997) {
    const ImageSize size{.height = 1, .width = bytes};
    const double amount = bytes % 11 / 10.0;
    const Both both = run_both(compose({random_noise({amount, amount})}), size, {.seed = 3},
                               random_levels(size, 1), scratch);
    ASSERT_EQ(both.simd, both.scalar) << bytes;
  }
}

}  // namespace
}  // namespace tandem
