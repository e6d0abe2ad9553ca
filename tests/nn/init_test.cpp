#include "tandem/nn/init.h"

#include <algorithm>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

struct Moments {
  double mean = 0, variance = 0, max_magnitude = 0;
};

Moments moments_of(const Tensor& tensor) {
  const std::vector<double> values = values_of(tensor);
  Moments moments;
  for (double value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.max_magnitude = std::max(moments.max_magnitude, std::abs(value));
  }
  for (double value : values)
    moments.variance += (value - moments.mean) * (value - moments.mean) / static_cast<double>(values.size());
  return moments;
}

class Init : public testing::TestWithParam<Device> {};

TEST_P(Init, Values_HaveTheExpectedVarianceAndBounds) {
  const Shape linear{200, 784}, kernel{64, 32, 3, 3};
  const auto expect = [&](Tensor (*f)(const Shape&, const RandomOptions&), const Shape& shape,
                          double variance, bool is_uniform) {
    const Moments moments = moments_of(f(shape, {.seed = 3, .device = GetParam()}));
    const double stddev = std::sqrt(variance), n = std::sqrt(static_cast<double>(shape.numel()));
    EXPECT_NEAR(moments.mean, 0, 5 * stddev / n);
    EXPECT_NEAR(moments.variance, variance, 8 * variance / n);
    const double bound = is_uniform ? std::sqrt(3.0) * stddev * (1 + 1e-6) : 7 * stddev;
    EXPECT_LE(moments.max_magnitude, bound);
    EXPECT_GT(moments.max_magnitude, (is_uniform ? 1.7 : 3.0) * stddev);
  };
  expect(fan_in_uniform, linear, 1.0 / (3 * 784), true);
  expect(fan_in_uniform, kernel, 1.0 / (3 * 32 * 9), true);
  expect(xavier_uniform, linear, 2.0 / (784 + 200), true);
  expect(xavier_normal, linear, 2.0 / (784 + 200), false);
  expect(he_uniform, linear, 2.0 / 784, true);
  expect(he_normal, linear, 2.0 / 784, false);
  expect(xavier_uniform, kernel, 2.0 / ((64 + 32) * 9), true);
  expect(he_normal, kernel, 2.0 / (32 * 9), false);
}

TEST_P(Init, Values_DependOnSeedAndStreamAndNotOnTheDevice) {
  for (auto f : {xavier_uniform, xavier_normal, he_uniform, he_normal}) {
    const auto values = [&](std::uint64_t seed, std::uint64_t stream, Device device) {
      const Tensor weights = f({5, 7}, {.seed = seed, .stream = stream, .device = device});
      EXPECT_EQ(weights.device(), device);
      return values_of(weights);
    };
    EXPECT_EQ(values(1, 0, GetParam()), values(1, 0, cpu_device));
    EXPECT_NE(values(1, 0, GetParam()), values(1, 1, GetParam()));
    EXPECT_NE(values(1, 0, GetParam()), values(2, 0, GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Init, testing::ValuesIn(test_devices()), device_name);

TEST(IdentityFilters, FirstFilters_CopyTheirChannels) {
  const Tensor weights = fan_in_uniform({4, 3, 3, 1}, {.seed = 2});
  const std::vector<double> before = values_of(weights), after = values_of(with_identity_filters(weights));
  for (std::size_t out = 0; out < 4; ++out)
    for (std::size_t in = 0; in < 3; ++in)
      for (std::size_t y = 0; y < 3; ++y) {
        const std::size_t i = (out * 3 + in) * 3 + y;
        EXPECT_EQ(after[i], out == 3 ? before[i] : out == in && y == 1 ? 1 : 0) << i;
      }
  EXPECT_EQ(
      error_text([] {
        with_identity_filters(fan_in_uniform({4, 3, 2, 2}));
      }),
      "[with_identity_filters] expected f32 weights (out, in, y, x) of odd kernel sizes, got [4, 3, 2, 2]");
}

TEST(InitErrors, TooFewAxes_ErrorShowsTheShape) {
  EXPECT_EQ(error_text([] { he_normal({7}); }),
            "[he_normal] expected weights of shape (out, in, …), got [7]");
}

}  // namespace
}  // namespace tandem
