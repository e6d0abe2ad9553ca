#include "tandem/augment/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "tandem/augment/mix_kernel.h"
#include "tandem/device/on_backend.h"
#include "tests/core/error_text.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

TEST(Mix, MixupWeights_HaveTheBetaDistribution) {
  struct Case {
    double alpha;
    std::vector<double> quantiles;  // scipy.stats.beta.ppf at the probabilities below
  };
  const std::vector<double> probabilities{0.1, 0.25, 0.4, 0.5, 0.75, 0.9};
  for (const Case& one : {Case{0.2, {0.000248, 0.023815, 0.216342, 0.500000, 0.976185, 0.999752}},
                          Case{1.0, {0.100000, 0.250000, 0.400000, 0.500000, 0.750000, 0.900000}},
                          Case{3.0, {0.246636, 0.359436, 0.446254, 0.500000, 0.640564, 0.753364}}}) {
    constexpr int samples = 20'000;
    std::vector<int> below(probabilities.size());
    for (int step = 0; step < samples; ++step) {
      const double own = sample_mix({.mixup = one.alpha}, 8, 8, 3, 1, step).label_weight;
      for (std::size_t i = 0; i < probabilities.size(); ++i) below[i] += own < one.quantiles[i];
    }
    for (std::size_t i = 0; i < probabilities.size(); ++i)
      EXPECT_NEAR(below[i], probabilities[i] * samples,
                  4 * std::sqrt(samples * probabilities[i] * (1 - probabilities[i])))
          << one.alpha << " at " << probabilities[i];
  }
}

TEST(Mix, CutmixBoxes_LieInsideAndDetermineTheLabelWeight) {
  std::set<std::int64_t> widths;
  for (int step = 0; step < 2000; ++step) {
    const MixArguments arguments = sample_mix({.cutmix = 1}, 20, 31, 5, 0, step);
    EXPECT_EQ(arguments.pixel_weight, MixArguments::full_weight);
    ASSERT_TRUE(arguments.box.x >= 0 && arguments.box.y >= 0 && arguments.box.width >= 0 &&
                arguments.box.height >= 0 && arguments.box.x + arguments.box.width <= 31 &&
                arguments.box.y + arguments.box.height <= 20);
    EXPECT_DOUBLE_EQ(arguments.label_weight,
                     1 - static_cast<double>(arguments.box.width * arguments.box.height) / (20 * 31));
    widths.insert(arguments.box.width);
  }
  EXPECT_GT(widths.size(), 25U);
}

TEST(Mix, BothKinds_AlternateAndAnEmptyRecipeChangesNothing) {
  int boxes = 0;
  for (int step = 0; step < 4000; ++step)
    boxes +=
        sample_mix({.mixup = 0.2, .cutmix = 1}, 64, 64, 5, 0, step).pixel_weight == MixArguments::full_weight;
  EXPECT_NEAR(boxes, 2000, 260);
  EXPECT_EQ(sample_mix({}, 8, 8, 1, 0, 0).label_weight, 1);
}

std::vector<std::uint8_t> levels_of(std::size_t count) {
  std::vector<std::uint8_t> levels(count);
  for (std::size_t i = 0; i < count; ++i) levels[i] = static_cast<std::uint8_t>(i * 131 + i / 7);
  return levels;
}

TEST(Mix, Batch_IsMixedWithItsNeighborsOnCpuAndCuda) {
  std::vector<Device> devices{cpu_device};
  if (cuda_device_count() > 0) devices.push_back(cuda_device());
  const std::int64_t height = 9, width = 13, count = 5, bytes = height * width * 3;
  const std::vector<std::uint8_t> levels = levels_of(static_cast<std::size_t>(4 * bytes));
  const std::vector<std::int32_t> order{2, 0, 3, 3, 1};
  for (const Device device : devices)
    for (int step = 0; step < 40; ++step) {
      const MixArguments arguments = sample_mix({.mixup = 1, .cutmix = 1}, 9, 13, 5, 0, step);
      const Tensor images = Tensor::from(levels, {4, height, width, 3}, device);
      const Tensor out = Tensor::empty({count, height, width, 3}, DType::u8, device);
      mix_batch(arguments, images, Tensor::from(order, {count}, device), out);
      const std::vector<std::uint8_t> actual = out.to_vector<std::uint8_t>();
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t at = 0; at < bytes; ++at) {
          const auto level = [&](std::int64_t image) {
            return levels[static_cast<std::size_t>(order[static_cast<std::size_t>(image)] * bytes + at)];
          };
          const std::int64_t x = at / 3 % width, y = at / 3 / width;
          const bool inside = x >= arguments.box.x && x < arguments.box.x + arguments.box.width &&
                              y >= arguments.box.y && y < arguments.box.y + arguments.box.height;
          const int own = level(i), other = level((i + count - 1) % count);
          const double weight = arguments.pixel_weight / 65536.0;
          const double expected = inside ? other : weight * own + (1 - weight) * other;
          ASSERT_NEAR(actual[static_cast<std::size_t>(i * bytes + at)], expected, 0.5) << step;
        }
    }
}

class MixOn : public testing::TestWithParam<Device> {};

// A part of a batch is mixed as in the whole batch: the row before its first one, for the first part the last
// row of the batch, stands in front of the part.
TEST_P(MixOn, PartsAfterTheirPreviousRow_EqualTheWholeBatch) {
  const std::int64_t height = 7, width = 10, count = 9, bytes = height * width * 3;
  const Device device = GetParam();
  const Tensor images =
      Tensor::from(levels_of(static_cast<std::size_t>(6 * bytes)), {6, height, width, 3}, device);
  const std::vector<std::int32_t> order{2, 0, 3, 5, 1, 4, 4, 2, 5};
  for (int step = 0; step < 10; ++step) {
    const MixArguments arguments = sample_mix({.mixup = 1, .cutmix = 1}, 7, 10, 5, 0, step);
    const Tensor whole = Tensor::empty({count, height, width, 3}, DType::u8, device);
    mix_batch(arguments, images, Tensor::from(order, {count}, device), whole);
    const Tensor joined = Tensor::empty(whole.shape(), DType::u8, device);
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 5}, {5, 9}}) {
      std::vector<std::int32_t> part{order[static_cast<std::size_t>((begin + count - 1) % count)]};
      part.insert(part.end(), order.begin() + begin, order.begin() + end);
      const Tensor samples = Tensor::from(part, {end - begin + 1}, device);
      const detail::MixBatch batch{.arguments = arguments,
                                   .images = images.data<std::uint8_t>(),
                                   .image_count = 6,
                                   .samples = samples.data<std::int32_t>() + 1,
                                   .out = joined.data<std::uint8_t>() + begin * bytes,
                                   .count = end - begin,
                                   .height = height,
                                   .width = width,
                                   .channels = 3,
                                   .previous_of_first = -1};
      on_backend(device, "mix", [&]<Backend B>() { detail::mix_kernel<B>(batch, current_stream(device)); });
    }
    EXPECT_EQ(joined.to_vector<std::uint8_t>(), whole.to_vector<std::uint8_t>()) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MixOn, testing::ValuesIn(test_devices()), device_name);

TEST(Mix, InvalidArguments_Throw) {
  EXPECT_EQ(error_text([] { sample_mix({.mixup = -1}, 8, 8, 1, 0, 0); }),
            "[mix] expected 0 or a number from 0.01 to 1000 for mixup and cutmix, got -1");
  const Tensor images = Tensor::empty({2, 4, 4, 3}, DType::u8);
  const auto text = [&](std::vector<std::int32_t> samples, const Tensor& out) {
    const auto count = static_cast<std::int64_t>(samples.size());
    return error_text([&] { mix_batch({}, images, Tensor::from(samples, {count}), out); });
  };
  EXPECT_EQ(text({2}, Tensor::empty({1, 4, 4, 3}, DType::u8)),
            "[mix] expected samples from 0 to below 2, got 2 at position 0");
  EXPECT_EQ(text({0, 1}, Tensor::empty({1, 4, 4, 3}, DType::u8)),
            "[mix] expected 1 samples of i32, got [2] of i32");
  EXPECT_EQ(text({0}, Tensor::empty({1, 4, 5, 3}, DType::u8)),
            "[mix] expected images and output of the same size, got [2, 4, 4, 3] and [1, 4, 5, 3]");
}

}  // namespace
}  // namespace tandem
