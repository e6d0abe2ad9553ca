#include "tandem/ops/random.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/ops/random_kernel.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double total = 0;
  for (double value : values) total += (value - mean) * (value - mean);
  return total / static_cast<double>(values.size());
}

TEST(RandomDefaults, EveryCallGetsItsOwnNumbers) {
  EXPECT_NE(values_of(uniform({20})), values_of(uniform({20})));
  EXPECT_NE(values_of(normal({20})), values_of(normal({20})));
  EXPECT_NE(values_of(random_integers({20}, 0, 1000)), values_of(random_integers({20}, 0, 1000)));
  const RandomOptions only_dtype{.dtype = DType::f64};
  EXPECT_NE(values_of(uniform({20}, 0, 1, only_dtype)), values_of(uniform({20}, 0, 1, only_dtype)));
}

TEST(RandomDefaults, ManualSeed_RepeatsTheSequence) {
  manual_seed(7);
  const auto first = values_of(uniform({20})), second = values_of(normal({20}));
  manual_seed(7);
  EXPECT_EQ(values_of(uniform({20})), first);
  EXPECT_EQ(values_of(normal({20})), second);
  manual_seed(8);
  EXPECT_NE(values_of(uniform({20})), first);
}

TEST(RandomDefaults, ExplicitSeedOrStream_FixesTheNumbersAndLeavesTheSequence) {
  const auto numbers = [](const RandomOptions& options) { return values_of(uniform({20}, 0, 1, options)); };
  manual_seed(7);
  const auto first = numbers({}), second = numbers({});
  manual_seed(7);
  EXPECT_EQ(numbers({}), first);
  EXPECT_EQ(numbers({.seed = 1}), numbers({.seed = 1, .stream = 0}));
  EXPECT_EQ(numbers({.stream = 3}), numbers({.seed = 0, .stream = 3}));
  EXPECT_EQ(numbers({}), second);
}

TEST(RandomDefaults, Threads_NeverShareAStream) {
  manual_seed(7);
  std::vector<std::vector<double>> values(64);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < values.size(); i += 4) values[i] = values_of(uniform({8}));
    });
  for (std::thread& thread : threads) thread.join();
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

class RandomFloats : public OpTest {
 protected:
  RandomOptions options(std::uint64_t seed = 1, std::uint64_t stream = 0) const {
    return {.seed = seed, .stream = stream, .dtype = dtype(), .device = device()};
  }
};

TEST_P(RandomFloats, Uniform_HasExpectedBoundsMeanAndVariance) {
  const Tensor x = uniform({400, 250}, -1, 3, options());
  EXPECT_EQ(x.shape(), (Shape{400, 250}));
  EXPECT_EQ(x.dtype(), dtype());
  EXPECT_EQ(x.device(), device());
  const auto values = values_of(x);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 3);
  EXPECT_NEAR(mean_of(values), 1, 0.02);
  EXPECT_NEAR(variance_of(values), 16.0 / 12, 0.02);
}

// Rounding must not reach the upper bound, not even for dtypes with few values in the range.
TEST_P(RandomFloats, UniformRounded_StaysBelowHigh) {
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{1, 2}, {100, 101}, {-1, 0}, {-2, -1}}) {
    const auto values = values_of(uniform({100000}, low, high, options()));
    EXPECT_GE(*std::min_element(values.begin(), values.end()), low);
    EXPECT_LT(*std::max_element(values.begin(), values.end()), high);
  }
}

TEST_P(RandomFloats, Normal_HasExpectedMomentsAndQuantiles) {
  const auto values = values_of(normal({100000}, 2, 3, options()));
  EXPECT_NEAR(mean_of(values), 2, 0.05);
  EXPECT_NEAR(variance_of(values), 9, 0.2);
  double third = 0;
  int within_one = 0, within_two = 0;
  for (double value : values) {
    const double z = (value - 2) / 3;
    third += z * z * z / static_cast<double>(values.size());
    within_one += std::abs(z) < 1;
    within_two += std::abs(z) < 2;
    ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_NEAR(third, 0, 0.05);
  EXPECT_NEAR(within_one / 1e5, 0.6827, 0.01);
  EXPECT_NEAR(within_two / 1e5, 0.9545, 0.01);
}

TEST_P(RandomFloats, Normal_NeighborsAreUncorrelated) {
  const auto values = values_of(normal({100000}, 0, 1, options()));
  for (std::size_t lag : {1, 2, 3, 4}) {
    double total = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i) total += values[i] * values[i + lag];
    EXPECT_NEAR(total / 1e5, 0, 0.02) << "lag " << lag;
  }
}

TEST_P(RandomFloats, Element_DependsOnlyOnSeedStreamAndIndex) {
  const auto whole = values_of(uniform({1001}, 0, 1, options()));
  for (std::int64_t count : {1, 2, 3, 5, 1000}) {
    const auto part = values_of(uniform({count}, 0, 1, options()));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  }
  EXPECT_EQ(values_of(uniform({7, 143}, 0, 1, options())), whole);
  const ThreadLimit one(1);
  EXPECT_EQ(values_of(uniform({100003}, 0, 1, options())).back(),
            values_of(uniform({100004}, 0, 1, options()))[100002]);
  EXPECT_NE(values_of(uniform({1001}, 0, 1, options(2))), whole);
  EXPECT_NE(values_of(uniform({1001}, 0, 1, options(1, 1))), whole);
  EXPECT_NE(values_of(uniform({1001}, 0, 1, options(1, std::uint64_t{1} << 32))), whole);
}

TEST_P(RandomFloats, CpuAndDevice_GiveSameNumbers) {
  RandomOptions here = options(5, 9), cpu = here;
  cpu.device = cpu_device;
  EXPECT_EQ(values_of(uniform({9973}, -0.3, 0.7, here)), values_of(uniform({9973}, -0.3, 0.7, cpu)));
  expect_values(normal({9973}, 0.1, 0.7, here), values_of(normal({9973}, 0.1, 0.7, cpu)),
                dtype() == DType::f64   ? 1e-14
                : dtype() == DType::f32 ? 1e-7
                                        : 1e-2);
}

TEST_P(RandomFloats, EqualBoundsOrZeroStddev_GivesConstant) {
  expect_values(uniform({9}, 2.5, 2.5, options()), std::vector<double>(9, 2.5), 0);
  expect_values(normal({9}, 2.5, 0, options()), std::vector<double>(9, 2.5), 0);
  EXPECT_EQ(uniform({0, 3}, 0, 1, options()).numel(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomFloats,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class RandomIntegers : public OpTest {
 protected:
  RandomIntegerOptions options(std::uint64_t seed = 1) const {
    return {.seed = seed, .dtype = dtype(), .device = device()};
  }
};

TEST_P(RandomIntegers, EveryValue_IsEquallyFrequent) {
  const auto values = values_of(random_integers({60000}, 3, 9, options()));
  std::vector<int> counts(9, 0);
  for (double value : values) {
    ASSERT_GE(value, 3);
    ASSERT_LT(value, 9);
    ++counts[static_cast<std::size_t>(value)];
  }
  for (int value = 3; value < 9; ++value) EXPECT_NEAR(counts[value], 10000, 400) << value;
}

TEST_P(RandomIntegers, CpuAndDevice_GiveSameNumbers) {
  RandomIntegerOptions here = options(4), cpu = here;
  cpu.device = cpu_device;
  EXPECT_EQ(values_of(random_integers({997}, 0, 200, here)), values_of(random_integers({997}, 0, 200, cpu)));
}

TEST_P(RandomIntegers, RangeOfOne_GivesConstant) {
  expect_values(random_integers({5}, 7, 8, options()), std::vector<double>(5, 7), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomIntegers,
                         testing::ValuesIn(op_cases({DType::u8, DType::i32, DType::i64})), op_case_name);

class RandomDevice : public testing::TestWithParam<Device> {};

// The mapping from Philox words to elements that random.h documents.
TEST_P(RandomDevice, Element_UsesDocumentedPhiloxWords) {
  const auto f32 = uniform({11}, 0, 1, {.seed = 3, .stream = 8, .device = GetParam()}).to_vector<float>();
  for (std::uint64_t i = 0; i < f32.size(); ++i)
    EXPECT_EQ(f32[i], to_unit_float(random_block(3, 8, i / 4).word[i % 4]));
  const auto f64 = uniform({11}, 0, 1, {.seed = 3, .stream = 8, .dtype = DType::f64, .device = GetParam()})
                       .to_vector<double>();
  for (std::uint64_t i = 0; i < f64.size(); ++i) {
    const Words4 block = random_block(3, 8, i / 2);
    EXPECT_EQ(f64[i], to_unit_double(block.word[2 * (i % 2)], block.word[2 * (i % 2) + 1]));
  }
  const auto i32 =
      random_integers({11}, 0, 1000, {.seed = 3, .stream = 8, .dtype = DType::i32, .device = GetParam()})
          .to_vector<std::int32_t>();
  for (std::uint64_t i = 0; i < i32.size(); ++i)
    EXPECT_EQ(static_cast<std::uint32_t>(i32[i]), to_below(random_block(3, 8, i / 4).word[i % 4], 1000));
}

TEST_P(RandomDevice, FullRangeIntegers_CoverTheDtype) {
  constexpr auto low = std::numeric_limits<std::int64_t>::min(),
                 high = std::numeric_limits<std::int64_t>::max();
  const auto wide = values_of(random_integers({20000}, low, high, {.seed = 1, .device = GetParam()}));
  EXPECT_NEAR(mean_of(wide) / 0x1p63, 0, 0.02);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -0.99 * 0x1p63);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 0.99 * 0x1p63);
  const auto narrow = values_of(random_integers({20000}, -(std::int64_t{1} << 31), std::int64_t{1} << 31,
                                                {.seed = 1, .dtype = DType::i32, .device = GetParam()}));
  EXPECT_NEAR(mean_of(narrow) / 0x1p31, 0, 0.02);
  EXPECT_LT(*std::min_element(narrow.begin(), narrow.end()), -0.99 * 0x1p31);
  EXPECT_GT(*std::max_element(narrow.begin(), narrow.end()), 0.99 * 0x1p31);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Random, MultiplyHigh_IsExact) {
  EXPECT_EQ(detail::multiply_high(~std::uint64_t{0}, ~std::uint64_t{0}), ~std::uint64_t{0} - 1);
  EXPECT_EQ(detail::multiply_high(0x123456789abcdef0u, 0xfedcba9876543210u), 0x121fa00ad77d7422u);
  EXPECT_EQ(detail::multiply_high(std::uint64_t{1} << 63, 2), 1u);
}

TEST(Random, BadBounds_Throw) {
  EXPECT_EQ(error_text([] { uniform({2}, 2, 1); }), "[uniform] expected finite low <= high, got 2 and 1");
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_text([&] { uniform({2}, nan, 1); }),
            "[uniform] expected finite low <= high, got nan and 1");
  EXPECT_EQ(error_text([&] { uniform({2}, 0, inf); }),
            "[uniform] expected finite low <= high, got 0 and inf");
  EXPECT_EQ(error_text([] { normal({2}, 0, -1); }),
            "[normal] expected a finite mean and a finite stddev of 0 or more, got 0 and -1");
  EXPECT_EQ(error_text([] { random_integers({2}, 3, 3); }),
            "[random_integers] expected low < high, got 3 and 3");
  EXPECT_EQ(error_text([] { random_integers({2}, 0, 257, {.dtype = DType::u8}); }),
            "[random_integers] expected bounds that fit u8, got 0 and 257");
  EXPECT_EQ(error_text([] { random_integers({2}, -1, 7, {.dtype = DType::u8}); }),
            "[random_integers] expected bounds that fit u8, got -1 and 7");
  EXPECT_EQ(error_text([] { uniform({2}, 0, 1, {.dtype = DType::i32}); }),
            "[uniform] expected dtype f32 or f64 or bf16, got i32");
  EXPECT_EQ(error_text([] { random_integers({2}, 0, 1, {.dtype = DType::f32}); }),
            "[random_integers] expected dtype u8 or i32 or i64, got f32");
}

}  // namespace
}  // namespace tandem
