// The sampled arguments of an image lie within their bounds, are uniform, and depend on the key only.
#include "tandem/augment/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace tandem::detail {
namespace {

constexpr ImageSize digit{.height = 28, .width = 28};

TEST(Arguments, SineAndCosine_AreAccurateAndExactAtRightAngles) {
  for (double degrees = -1000; degrees <= 1000; degrees += 0.37) {
    const auto [sine, cosine] = sine_cosine(degrees);
    EXPECT_NEAR(sine, std::sin(degrees * std::numbers::pi / 180), 1e-12) << degrees;
    EXPECT_NEAR(cosine, std::cos(degrees * std::numbers::pi / 180), 1e-12) << degrees;
  }
  for (int quarters = -400; quarters <= 400; ++quarters) {
    const auto [sine, cosine] = sine_cosine(90.0 * quarters);
    const double sines[] = {0, 1, 0, -1};
    EXPECT_EQ(sine, sines[quarters & 3]) << quarters;
    EXPECT_EQ(cosine, sines[(quarters + 1) & 3]) << quarters;
  }
}

TEST(Arguments, Integers_ReachTheirBoundsAndAreUniform) {
  const AugmentStep step = random_shift({-2, 2}, {-1, 3});
  int dx[5] = {}, dy[5] = {};
  constexpr int samples = 50000;
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const SampledStep sampled = sample_step(step, digit, {.seed = 7, .sample = sample});
    ASSERT_TRUE(sampled.dx >= -2 && sampled.dx <= 2 && sampled.dy >= -1 && sampled.dy <= 3);
    ++dx[sampled.dx + 2];
    ++dy[sampled.dy + 1];
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(dx[i], samples / 5, 500);  // about five standard deviations
    EXPECT_NEAR(dy[i], samples / 5, 500);
  }
}

TEST(Arguments, AnglesTiltsAndNoise_AreUniformBetweenTheirBounds) {
  constexpr int samples = 50000;
  const auto expect_uniform = [](const AugmentStep& step, double min, double max, const auto& value) {
    double sum = 0, lowest = max, highest = min;
    for (std::uint32_t sample = 0; sample < samples; ++sample) {
      const double v = value(sample_step(step, digit, {.seed = 8, .epoch = 3, .sample = sample}));
      sum += v;
      lowest = std::min(lowest, v);
      highest = std::max(highest, v);
    }
    const double range = max - min;
    EXPECT_NEAR(sum / samples, (min + max) / 2, 0.007 * range);
    EXPECT_GE(lowest, min);
    EXPECT_LE(highest, max);
    EXPECT_LT(lowest, min + 0.001 * range);
    EXPECT_GT(highest, max - 0.001 * range);
  };
  expect_uniform(random_rotate({-12, 30}), -12, 30, [](const SampledStep& d) { return d.value; });
  expect_uniform(random_skew({-0.5, 0.1}), -0.5, 0.1, [](const SampledStep& d) { return d.tilt; });
  expect_uniform(random_noise({0.25, 0.5}), 0.25, 0.5,
                 [](const SampledStep& d) { return d.noise / 32640.0; });
  expect_uniform(random_zoom({0.5, 3}), 0.5, 3, [](const SampledStep& d) { return d.value; });
  expect_uniform(random_crop({0.2, 1}), 0.2, 1, [](const SampledStep& d) { return d.value; });
  // The position of a box with a quarter of the area.
  const auto part = [](std::int64_t start) { return static_cast<double>(start) / (1 << 24) / 13.5; };
  expect_uniform(random_crop({0.25, 0.25}), 0, 1, [&](const SampledStep& d) { return part(d.map.x0); });
  expect_uniform(random_crop({0.25, 0.25}), 0, 1, [&](const SampledStep& d) { return part(d.map.y0); });
}

TEST(Arguments, FlipsAndBlurs_HaveTheirProbability) {
  const BlurKernel ring = blur_kernel("ring");
  for (const double probability : {0.0, 0.25, 0.5, 1.0}) {
    int flips = 0, blurs = 0;
    for (std::uint32_t sample = 0; sample < 10000; ++sample) {
      flips += sample_step(random_flip(probability), digit, {.seed = 2, .sample = sample}).applied;
      blurs += sample_step(random_blur(probability, ring), digit, {.seed = 3, .sample = sample}).applied;
    }
    const double tolerance = probability > 0 && probability < 1 ? 200 : 0;
    EXPECT_NEAR(flips, 10000 * probability, tolerance);
    EXPECT_NEAR(blurs, 10000 * probability, tolerance);
  }
}

TEST(Arguments, AlternatingFlips_ShowEveryImageBothWaysInTwoEpochs) {
  int flips = 0, seeds_differ = 0;
  for (std::uint32_t sample = 0; sample < 10000; ++sample) {
    const auto flipped = [&](std::uint32_t epoch, std::uint64_t seed) {
      return sample_step(alternating_flip(), digit, {.seed = seed, .epoch = epoch, .sample = sample}).applied;
    };
    const bool first = flipped(0, 2);
    flips += first;
    seeds_differ += first != flipped(0, 3);
    for (std::uint32_t epoch = 1; epoch < 6; ++epoch)
      ASSERT_EQ(flipped(epoch, 2), epoch % 2 == 0 ? first : !first) << sample << " in epoch " << epoch;
  }
  EXPECT_NEAR(flips, 5000, 200);
  EXPECT_NEAR(seeds_differ, 5000, 200);
}

TEST(Arguments, EqualBounds_FixTheArgument) {
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const RandomKey key{.seed = 1, .sample = sample};
    EXPECT_EQ(sample_step(random_rotate({33, 33}), digit, key).value, 33);
    EXPECT_EQ(sample_step(random_shift({-65536, -65536}, {65536, 65536}), digit, key).dx, -65536);
    EXPECT_EQ(sample_step(random_skew({0.3, 0.3}), digit, key).tilt, 0.3);
    EXPECT_EQ(sample_step(random_noise({1, 1}), digit, key).noise, 32640);
  }
}

TEST(Arguments, Result_DependsOnEveryPartOfTheKey) {
  const auto degrees = [](const RandomKey& key) {
    return sample_step(random_rotate({0, 360}), digit, key).value;
  };
  const RandomKey key{.seed = 5, .epoch = 6, .sample = 7, .operation = 8};
  EXPECT_EQ(degrees(key), degrees(key));
  std::set<double> angles{degrees(key)};
  for (std::uint32_t i = 1; i <= 100; ++i) {
    angles.insert(degrees({.seed = 5 + i, .epoch = 6, .sample = 7, .operation = 8}));
    angles.insert(degrees({.seed = 5 + (std::uint64_t{i} << 32), .epoch = 6, .sample = 7, .operation = 8}));
    angles.insert(degrees({.seed = 5, .epoch = 6 + i, .sample = 7, .operation = 8}));
    angles.insert(degrees({.seed = 5, .epoch = 6, .sample = 7 + i, .operation = 8}));
    angles.insert(degrees({.seed = 5, .epoch = 6, .sample = 7, .operation = 8 + i}));
  }
  EXPECT_EQ(angles.size(), 501u);
}

TEST(Arguments, Noise_StaysWithinItsAmountAndTheLevels) {
  for (const std::int32_t noise : {0, 1, 128, 3264, 32640})
    for (const std::int32_t level : {0, 1, 128, 255})
      for (std::uint32_t bits = 0; bits < 65536; bits += 5) {
        const double exact = level + (2.0 * bits - 65535) / 65536 * noise / 128;
        const std::int32_t noisy = noisy_level(level, noise, bits);
        ASSERT_NEAR(noisy, std::clamp(exact, 0.0, 255.0), 0.51) << level << ' ' << noise << ' ' << bits;
      }
}

TEST(Arguments, RowMoveWithFlips_EqualsItsSteps) {
  const ImageSize size{.height = 4, .width = 7};
  const SampledStep steps[] = {fixed_shift(1, 0), fixed_flip(true), fixed_shift(2, 1),
                               fixed_flip(false), fixed_flip(true), fixed_shift(1, -1)};
  for (int y = 0; y < size.height; ++y) {
    const RowMove move = row_move(steps, 6, size, y);
    for (int x = 0; x < size.width; ++x) {
      int row = y - 1, column = x + 1;  // the last step is undone first
      bool inside = row >= 0 && column < size.width;
      column = size.width - 1 - column + 2;
      row += 1;
      inside = inside && column < size.width && row < size.height;
      column = size.width - 1 - column + 1;
      inside = inside && column >= 0 && column < size.width;
      EXPECT_EQ(inside, x >= move.begin && x < move.end) << y << ' ' << x;
      if (inside) {
        EXPECT_EQ(row, move.row);
        EXPECT_EQ(column, move.column(x));
      }
    }
  }
}

TEST(Arguments, FusedPasses_HoldWhatFits) {
  const BlurKernel ring = blur_kernel("ring");
  const auto ends = [](const Recipe& recipe) {
    std::vector<int> all;
    for (int begin = 0; begin < recipe.count;) all.push_back(begin = fused_pass_at(recipe, begin).end);
    return all;
  };
  const AugmentStep shift = random_shift({0, 1}, {0, 1}), noise = random_noise({0, 1}), flip = random_flip(1),
                    zoom = random_zoom({1, 2}), blur = random_blur(1, ring);
  EXPECT_EQ(ends(compose({flip, shift, zoom, shift, noise, noise})), std::vector<int>{6});
  EXPECT_EQ(ends(compose({zoom, flip, shift})), (std::vector<int>{1, 3})) << "a flip begins a pass";
  EXPECT_EQ(ends(compose({shift, flip, noise})), std::vector<int>{3});
  EXPECT_EQ(ends(compose({alternating_flip(), random_reflected_shift({0, 1}, {0, 1}), shift, noise})),
            std::vector<int>{4});
  EXPECT_EQ(ends(compose({zoom, blur, random_crop({1, 1}), random_rotate({0, 1})})),
            (std::vector<int>{1, 2, 3, 4}));
}

TEST(Arguments, RowMove_EqualsItsSteps) {
  const ImageSize size{.height = 5, .width = 6};
  const SampledStep steps[] = {fixed_shift(1, 2), fixed_skew(-0.5), fixed_shift(-1, -1)};
  for (int y = 0; y < size.height; ++y) {
    const RowMove move = row_move(steps, 3, size, y);
    for (int x = 0; x < size.width; ++x) {
      int row = y - 1, column = x - 1;  // the last step is undone first
      bool inside = row >= 0 && column >= 0;
      column += static_cast<int>(std::floor(row * -0.5));
      inside = inside && column >= 0 && column < size.width;
      row += 2;
      column += 1;
      inside = inside && row < size.height && column < size.width;
      EXPECT_EQ(inside, x >= move.begin && x < move.end) << y << ' ' << x;
      if (inside) {
        EXPECT_EQ(row, move.row);
        EXPECT_EQ(column, x + move.offset);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::detail
