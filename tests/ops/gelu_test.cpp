// GELU: the only activation so far whose gradient needs the input.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/ops/activation.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

double normal_distribution(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

class GeluTest : public OpTest {};

TEST_P(GeluTest, AnyShape_MatchesFormula) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{17, 33}, Shape{100003}}) {
    const Tensor x = random_tensor(shape, dtype(), device(), 1, -9, 9);
    std::vector<double> expected;
    for (const double value : values_of(x)) expected.push_back(value * normal_distribution(value));
    expect_values(gelu(x), expected, tolerance());
    EXPECT_EQ(gelu(x).dtype(), dtype());
  }
}

// x · Φ(x) with nine digits of Φ.
TEST_P(GeluTest, KnownValues) {
  const Tensor x = tensor_of({-3, -1, -0.5, 0, 0.5, 1, 3}, {7}, dtype(), device());
  expect_values(gelu(x),
                {-0.00404969409, -0.158655254, -0.154268770, 0, 0.345731230, 0.841344746, 2.99595031},
                std::max(tolerance(), 1e-8));
}

TEST_P(GeluTest, InfinityAndNan_MatchLimits) {
  const Tensor x = tensor_of({-inf, -1e30, 0, 1e30, inf, nan_value}, {6}, dtype(), device());
  const std::vector<double> values = values_of(gelu(x));
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], 0);
  EXPECT_EQ(values[4], inf);
  EXPECT_TRUE(std::isnan(values[5]));
}

TEST_P(GeluTest, Gradient_MatchesFormulaForStridedInputToo) {
  const Tensor values = random_tensor({6, 5}, dtype(), device(), 2, -4, 4);
  Tensor x = values.transpose().contiguous().set_requires_grad();
  backward(sum(gelu(x)));
  std::vector<double> expected;
  for (const double value : values_of(x))
    expected.push_back(normal_distribution(value) +
                       value * std::exp(-value * value / 2) / std::sqrt(2 * std::acos(-1.0)));
  expect_values(x.grad(), expected, 2 * tolerance());
}

INSTANTIATE_TEST_SUITE_P(Devices, GeluTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class GeluOnDevice : public testing::TestWithParam<Device> {};

TEST_P(GeluOnDevice, Gradients_MatchCentralDifferences) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 4}})
    expect_gradients([](const auto& in) { return gelu(in[0]); },
                     {random_tensor(shape, DType::f64, GetParam(), 5, -3, 3)});
  expect_gradients([](const auto& in) { return gelu(in[0].transpose()); },
                   {random_tensor({4, 3}, DType::f64, GetParam(), 7)});
}

// 1 + erf would lose all digits of small results.
TEST_P(GeluOnDevice, NegativeArguments_KeepTheirRelativeAccuracy) {
  std::vector<float> arguments;
  for (float x = -9; x < 0; x += 0.01f) arguments.push_back(x);
  const std::vector<float> values =
      gelu(Tensor::from(arguments, {std::ssize(arguments)}, GetParam())).to_vector<float>();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const double x = arguments[i], exact = x * normal_distribution(x);
    ASSERT_NEAR(values[i], exact, 3e-5 * std::abs(exact)) << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GeluOnDevice, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
