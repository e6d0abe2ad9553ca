// The sampled arguments of photographs have torchvision's distributions, and boxes lie inside the image.
#include "tandem/augment/photo_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "tandem/augment/transform.h"
#include "tests/golden/golden.h"

namespace tandem::detail {
namespace {

using Counts = std::vector<double>;
constexpr int bins = 21;
constexpr std::uint32_t sample_count = 50'000;

std::size_t bin_of(double fraction) {
  return static_cast<std::size_t>(std::clamp(static_cast<int>(std::floor(fraction * bins)), 0, bins - 1));
}
std::size_t offset_bin(std::int64_t offset, std::int64_t max_offset) {
  return max_offset == 0 ? 0
                         : static_cast<std::size_t>(
                               1 + std::min<std::int64_t>(bins - 2, offset * (bins - 1) / (max_offset + 1)));
}

// The χ² statistic of two histograms, in standard deviations from its expectation for equal distributions.
double deviation(const Counts& a, const Counts& b) {
  double sum_a = 0, sum_b = 0, chi = 0;
  for (const double count : a) sum_a += count;
  for (const double count : b) sum_b += count;
  int used = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] + b[i] == 0) continue;
    const double difference = a[i] * std::sqrt(sum_b / sum_a) - b[i] * std::sqrt(sum_a / sum_b);
    chi += difference * difference / (a[i] + b[i]);
    ++used;
  }
  const double freedom = std::max(1, used - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(PhotoArguments, Boxes_HaveTorchvisionsDistribution) {
  for (const golden::Case& one : golden::load("crop")) {
    const std::int64_t height = one.params.at("height"), width = one.params.at("width");
    const bool erase = one.params.at("op") == "erase";
    const Bounds scale{one.params.at("scale")[0], one.params.at("scale")[1]};
    const Bounds ratio{one.params.at("ratio")[0], one.params.at("ratio")[1]};
    PhotoRecipe recipe = training_photo_recipe(32);
    if (erase) {
      recipe.height = static_cast<int>(height), recipe.width = static_cast<int>(width);
      recipe.erase.probability = 1, recipe.erase.scale = scale, recipe.erase.ratio = ratio;
    } else {
      recipe.crop_scale = scale, recipe.crop_ratio = ratio;
    }
    std::map<std::string, Counts> histograms;
    for (const char* what : {"area", "aspect", "left", "top"}) histograms[what].resize(bins);
    for (std::uint32_t sample = 0; sample < sample_count; ++sample) {
      const PhotoArguments arguments =
          sample_photo(recipe, height, width, {.seed = 77, .epoch = 3, .sample = sample});
      const PixelBox& box = erase ? arguments.erase : arguments.box;
      ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height);
      const auto w = static_cast<double>(box.width), h = static_cast<double>(box.height);
      ++histograms["area"][bin_of(w * h / static_cast<double>(height * width))];
      ++histograms["aspect"][bin_of(w * h > 0 ? (std::log(w / h) + 3) / 6 : 0)];
      ++histograms["left"][offset_bin(box.x, width - box.width)];
      ++histograms["top"][offset_bin(box.y, height - box.height)];
    }
    for (const auto& [what, counts] : histograms)
      EXPECT_LT(deviation(counts, one.array(what).values<double>()), 5) << one.name << ", " << what;
  }
}

// The bound used above detects histograms that differ.
TEST(PhotoArguments, Deviation_DetectsDifferentDistributions) {
  const Counts uniform(20, 2500);
  Counts other(20, 10000);
  other[3] *= 1.3;
  EXPECT_GT(deviation(uniform, other), 4);
  EXPECT_LT(deviation(uniform, Counts(20, 10000)), 0);
}

TEST(PhotoArguments, ExtremeSizes_GiveBoxesInside) {
  for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {1, 5000}, {5000, 1}, {2, 3}, {65000, 65000}})
    for (std::uint32_t sample = 0; sample < 2000; ++sample) {
      const PixelBox box =
          sample_photo(training_photo_recipe(224), height, width, {.seed = 1, .sample = sample}).box;
      ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 &&
                  box.x + box.width <= width && box.y + box.height <= height)
          << height << "×" << width;
    }
}

TEST(PhotoArguments, Box_DependsOnSeedEpochAndSample) {
  const PhotoRecipe recipe = training_photo_recipe(224);
  const auto box = [&](const RandomKey& key) { return sample_photo(recipe, 400, 300, key).box; };
  const PixelBox first = box({.seed = 1, .epoch = 2, .sample = 3, .operation = 9});
  EXPECT_EQ(first, box({.seed = 1, .epoch = 2, .sample = 3}));
  EXPECT_NE(first, box({.seed = 2, .epoch = 2, .sample = 3}));
  EXPECT_NE(first, box({.seed = 1, .epoch = 3, .sample = 3}));
  EXPECT_NE(first, box({.seed = 1, .epoch = 2, .sample = 4}));
}

TEST(PhotoArguments, PortableExpAndLog_AreAccurate) {
  for (double x = -7; x <= 7; x += 0.01) {
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-15);
    EXPECT_NEAR(portable_log(std::exp(x)), x, 3e-15);
  }
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_log(1), 0);
}

TEST(PhotoArguments, Jitter_HasEveryOrderAndStaysWithinItsBounds) {
  PhotoRecipe recipe = evaluation_photo_recipe(8);
  recipe.jitter = {.brightness = 0.4, .contrast = 1.5, .saturation = 0.25, .hue = 0.1};
  std::map<std::vector<PhotoOpKind>, int> orders;
  double brightest = 0, darkest = 2;
  for (std::uint32_t sample = 0; sample < 24'000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 9, 9, {.seed = 4, .sample = sample});
    ASSERT_EQ(arguments.op_count, 4);
    std::vector<PhotoOpKind> order;
    for (int i = 0; i < 4; ++i) {
      const PhotoOp& op = arguments.ops[i];
      order.push_back(op.kind);
      const double value = op.value / 65536.0;
      if (op.kind == PhotoOpKind::brightness) {
        ASSERT_TRUE(value >= 0.6 - 1e-4 && value <= 1.4 + 1e-4);
        brightest = std::max(brightest, value), darkest = std::min(darkest, value);
      }
      if (op.kind == PhotoOpKind::contrast) {
        ASSERT_TRUE(value >= 0 && value <= 2.5 + 1e-4);
      }
      if (op.kind == PhotoOpKind::hue) {
        ASSERT_TRUE(op.value <= 25 || op.value >= 256 - 25);
      }
    }
    ++orders[order];
  }
  EXPECT_EQ(orders.size(), 24U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 160);
  EXPECT_GT(brightest, 1.39);
  EXPECT_LT(darkest, 0.61);
}

TEST(PhotoArguments, RandAugment_SamplesOperationsUniformly) {
  PhotoRecipe recipe = evaluation_photo_recipe(8);
  recipe.rand_augment = {.count = 2, .magnitude = 9};
  std::map<PhotoOpKind, int> kinds;
  for (std::uint32_t sample = 0; sample < 14'000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 9, 9, {.seed = 4, .sample = sample});
    ASSERT_EQ(arguments.op_count, 2);
    for (int i = 0; i < 2; ++i) ++kinds[arguments.ops[i].kind];
  }
  EXPECT_EQ(kinds.size(), 14U);
  for (const auto& [kind, count] : kinds) EXPECT_NEAR(count, 2000, 220);
}

TEST(PhotoArguments, TrivialAugment_SamplesOperationsAndMagnitudesUniformly) {
  const PhotoRecipe recipe = Transform::parse("resize, trivial_augment", 64).photo();
  std::map<PhotoOpKind, int> kinds;
  std::map<std::int32_t, int> factors;  // of brightness
  for (std::uint32_t sample = 0; sample < 62'000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 9, 9, {.seed = 4, .sample = sample});
    ASSERT_EQ(arguments.op_count, 1);
    ++kinds[arguments.ops[0].kind];
    if (arguments.ops[0].kind == PhotoOpKind::brightness) ++factors[arguments.ops[0].value];
  }
  EXPECT_EQ(kinds.size(), 14U);
  for (const auto& [kind, count] : kinds) EXPECT_NEAR(count, 62'000 / 14, 330);
  EXPECT_EQ(factors.size(), 61U);  // 30 to each side, and none
  EXPECT_EQ(factors.begin()->first, to_fixed(0.01));
  EXPECT_EQ(factors.rbegin()->first, to_fixed(1.99));
}

TEST(PhotoArguments, RotationAndPerspective_StayWithinTheirBounds) {
  const PhotoRecipe recipe =
      Transform::parse("resize, vertical_flip 0.2, rotation 25, perspective 0.5 0.4", 100).photo();
  int flips = 0, warped = 0;
  double most = 0, least = 0;  // sines
  for (std::uint32_t sample = 0; sample < 20'000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 90, 80, {.seed = 4, .sample = sample});
    flips += arguments.vertical_flip;
    ASSERT_TRUE(arguments.op_count == 1 || arguments.op_count == 2);
    ASSERT_EQ(arguments.ops[0].kind, PhotoOpKind::rotate);
    most = std::max(most, arguments.ops[0].map[1] / 65536.0);
    least = std::min(least, arguments.ops[0].map[1] / 65536.0);
    if (arguments.op_count == 1) continue;
    ++warped;
    // The corner (0, 0) moves to a pixel at most 25 pixels inwards.
    const auto& c = arguments.ops[1].coefficients;
    const auto reaches = [&](double x, double y) {
      const double w = c[6] * x + c[7] * y + 1;
      return std::abs((c[0] * x + c[1] * y + c[2]) / w) < 1e-6 &&
             std::abs((c[3] * x + c[4] * y + c[5]) / w) < 1e-6;
    };
    bool found = false;
    for (int y = 0; y <= 25 && !found; ++y)
      for (int x = 0; x <= 25 && !found; ++x) found = reaches(x, y);
    ASSERT_TRUE(found);
  }
  EXPECT_NEAR(flips, 4000, 300);
  EXPECT_NEAR(warped, 8000, 350);
  EXPECT_NEAR(most, std::sin(25 * 3.14159265 / 180), 1e-3);
  EXPECT_NEAR(least, -most, 1e-3);
}

// Where the corners of the image come to lie, by the inverse of the map: each at most half of the way to the
// center, and over many samples anywhere between.
TEST(PhotoArguments, Perspective_MovesEveryCornerInwards) {
  PhotoRecipe recipe = Transform::parse("resize, perspective 0.5 1", 60).photo();
  recipe.width = 100;
  const double right = 99, bottom = 59;
  const double from[4][2] = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
  double min_dx[4] = {99, 99, 99, 99}, min_dy[4] = {99, 99, 99, 99}, max_dx[4] = {}, max_dy[4] = {};
  for (std::uint32_t sample = 0; sample < 2000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 90, 80, {.seed = 4, .sample = sample});
    ASSERT_EQ(arguments.op_count, 1);
    const auto& c = arguments.ops[0].coefficients;
    for (int i = 0; i < 4; ++i) {
      const double x = from[i][0], y = from[i][1];
      const double w =
          (c[3] * c[7] - c[4] * c[6]) * x + (c[1] * c[6] - c[0] * c[7]) * y + c[0] * c[4] - c[1] * c[3];
      const double to_x =
          ((c[4] - c[5] * c[7]) * x + (c[2] * c[7] - c[1]) * y + c[1] * c[5] - c[2] * c[4]) / w;
      const double to_y =
          ((c[5] * c[6] - c[3]) * x + (c[0] - c[2] * c[6]) * y + c[2] * c[3] - c[0] * c[5]) / w;
      const double dx = x > 0 ? right - to_x : to_x, dy = y > 0 ? bottom - to_y : to_y;
      min_dx[i] = std::min(min_dx[i], dx);
      max_dx[i] = std::max(max_dx[i], dx);
      min_dy[i] = std::min(min_dy[i], dy);
      max_dy[i] = std::max(max_dy[i], dy);
    }
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(min_dx[i], 0, 1e-6) << i;
    EXPECT_NEAR(max_dx[i], 25, 1e-6) << i;
    EXPECT_NEAR(min_dy[i], 0, 1e-6) << i;
    EXPECT_NEAR(max_dy[i], 15, 1e-6) << i;
  }
}

TEST(PhotoArguments, FlipsAndErase_HaveTheirProbabilitiesIndependently) {
  PhotoRecipe recipe = training_photo_recipe(64);
  recipe.flip = 0.3;
  recipe.vertical_flip = 0.4;
  recipe.erase.probability = 0.25;
  int flips = 0, turned = 0, erased = 0, both = 0;
  for (std::uint32_t sample = 0; sample < 20'000; ++sample) {
    const PhotoArguments arguments = sample_photo(recipe, 90, 80, {.seed = 4, .sample = sample});
    flips += arguments.flip;
    turned += arguments.flip && arguments.vertical_flip;
    erased += arguments.erase.width > 0;
    both += arguments.flip && arguments.erase.width > 0;
  }
  EXPECT_NEAR(flips, 6000, 330);
  EXPECT_NEAR(turned, 2400, 230);
  EXPECT_NEAR(erased, 5000, 310);
  EXPECT_NEAR(both, 1500, 190);
}

}  // namespace
}  // namespace tandem::detail
