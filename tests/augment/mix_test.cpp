#include "tandem/augment/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Mix, SharesHaveTheBetaDistribution) {
  struct Case {
    double alpha;
    std::vector<double> quantiles;  // scipy.stats.beta.ppf at the levels below
  };
  const std::vector<double> levels{0.1, 0.25, 0.4, 0.5, 0.75, 0.9};
  for (const Case& one : {Case{0.2, {0.000248, 0.023815, 0.216342, 0.500000, 0.976185, 0.999752}},
                          Case{1.0, {0.100000, 0.250000, 0.400000, 0.500000, 0.750000, 0.900000}},
                          Case{3.0, {0.246636, 0.359436, 0.446254, 0.500000, 0.640564, 0.753364}}}) {
    constexpr int draws = 20'000;
    std::vector<int> below(levels.size());
    for (int step = 0; step < draws; ++step) {
      const double own = draw_mix({.mixup = one.alpha}, 8, 8, 3, 1, step).own;
      for (std::size_t i = 0; i < levels.size(); ++i) below[i] += own < one.quantiles[i];
    }
    for (std::size_t i = 0; i < levels.size(); ++i)
      EXPECT_NEAR(below[i], levels[i] * draws, 4 * std::sqrt(draws * levels[i] * (1 - levels[i])))
          << one.alpha << " at " << levels[i];
  }
}

TEST(Mix, BoxesLieInsideAndWeighTheirArea) {
  std::set<std::int64_t> widths;
  for (int step = 0; step < 2000; ++step) {
    const MixDraw draw = draw_mix({.cutmix = 1}, 20, 31, 5, 0, step);
    EXPECT_EQ(draw.share, whole_share);
    ASSERT_TRUE(draw.box.x >= 0 && draw.box.y >= 0 && draw.box.width >= 0 && draw.box.height >= 0 &&
                draw.box.x + draw.box.width <= 31 && draw.box.y + draw.box.height <= 20);
    EXPECT_DOUBLE_EQ(draw.own, 1 - static_cast<double>(draw.box.width * draw.box.height) / (20 * 31));
    widths.insert(draw.box.width);
  }
  EXPECT_GT(widths.size(), 25U);
}

TEST(Mix, EachKindHasHalfOfTheBatchesAndNoneLeavesThemAlone) {
  int boxes = 0;
  for (int step = 0; step < 4000; ++step)
    boxes += draw_mix({.mixup = 0.2, .cutmix = 1}, 64, 64, 5, 0, step).share == whole_share;
  EXPECT_NEAR(boxes, 2000, 260);
  EXPECT_EQ(draw_mix({}, 8, 8, 1, 0, 0).own, 1);
}

std::vector<std::uint8_t> levels_of(std::size_t count) {
  std::vector<std::uint8_t> levels(count);
  for (std::size_t i = 0; i < count; ++i) levels[i] = static_cast<std::uint8_t>(i * 131 + i / 7);
  return levels;
}

TEST(Mix, ABatchIsMixedWithItsNeighbours) {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  const std::int64_t height = 9, width = 13, count = 5, bytes = height * width * 3;
  const std::vector<std::uint8_t> levels = levels_of(static_cast<std::size_t>(4 * bytes));
  const std::vector<std::int32_t> order{2, 0, 3, 3, 1};
  for (const Device device : devices)
    for (int step = 0; step < 40; ++step) {
      const MixDraw draw = draw_mix({.mixup = 1, .cutmix = 1}, 9, 13, 5, 0, step);
      const Tensor images = Tensor::from(levels, {4, height, width, 3}, device);
      const Tensor out = Tensor::empty({count, height, width, 3}, DType::u8, device);
      mix_batch(draw, images, Tensor::from(order, {count}, device), out);
      const std::vector<std::uint8_t> found = out.to_vector<std::uint8_t>();
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t at = 0; at < bytes; ++at) {
          const auto level = [&](std::int64_t image) {
            return levels[static_cast<std::size_t>(order[static_cast<std::size_t>(image)] * bytes + at)];
          };
          const std::int64_t x = at / 3 % width, y = at / 3 / width;
          const bool inside = x >= draw.box.x && x < draw.box.x + draw.box.width && y >= draw.box.y &&
                              y < draw.box.y + draw.box.height;
          const int own = level(i), other = level((i + count - 1) % count);
          const double share = draw.share / 65536.0;
          const double expected = inside ? other : share * own + (1 - share) * other;
          ASSERT_NEAR(found[static_cast<std::size_t>(i * bytes + at)], expected, 0.5) << step;
        }
    }
}

TEST(Mix, NonsenseIsRefused) {
  EXPECT_EQ(error_text([] { draw_mix({.mixup = -1}, 8, 8, 1, 0, 0); }),
            "[mix] expected 0 or a number from 0.01 to 1000 for mixup and cutmix, got -1");
  const Tensor images = Tensor::empty({2, 4, 4, 3}, DType::u8);
  const auto text = [&](std::vector<std::int32_t> samples, const Tensor& out) {
    const auto count = static_cast<std::int64_t>(samples.size());
    return error_text([&] { mix_batch({}, images, Tensor::from(samples, {count}), out); });
  };
  EXPECT_EQ(text({2}, Tensor::empty({1, 4, 4, 3}, DType::u8)),
            "[mix] expected samples of 0 or more and below 2, got 2 at position 0");
  EXPECT_EQ(text({0, 1}, Tensor::empty({1, 4, 4, 3}, DType::u8)),
            "[mix] expected 1 samples of i32, got [2] of i32");
  EXPECT_EQ(text({0}, Tensor::empty({1, 4, 5, 3}, DType::u8)),
            "[mix] expected images and results of one size, got [2, 4, 4, 3] and [1, 4, 5, 3]");
}

}  // namespace
}  // namespace tandem
