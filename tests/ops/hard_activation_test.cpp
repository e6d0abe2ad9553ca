// SiLU, hardswish and hardsigmoid, the activations of mobile networks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/ops/activation.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

struct Formula {
  Tensor (*apply)(const Tensor&);
  double (*value)(double x);
  double (*slope)(double x);
};

double exact_sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double exact_hardsigmoid(double x) {
  return std::min(std::max(x + 3, 0.0), 6.0) / 6;
}

const Formula formulas[] = {
    {silu, [](double x) { return x * exact_sigmoid(x); },
     [](double x) { return exact_sigmoid(x) * (1 + x * (1 - exact_sigmoid(x))); }},
    {hardswish, [](double x) { return x * exact_hardsigmoid(x); },
     [](double x) { return x <= -3  ? 0
                           : x >= 3 ? 1
                                    : x / 3 + 0.5; }},
    {hardsigmoid, exact_hardsigmoid, [](double x) { return x <= -3 || x >= 3 ? 0 : 1.0 / 6; }},
};

class HardActivationTest : public OpTest {};

TEST_P(HardActivationTest, AnyShape_MatchesFormula) {
  for (const Formula& formula : formulas)
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{17, 33}, Shape{100003}}) {
      Tensor x = random_tensor(shape, dtype(), device(), 1, -9, 9).set_requires_grad();
      std::vector<double> values, slopes;
      for (const double value : values_of(x)) {
        values.push_back(formula.value(value));
        slopes.push_back(formula.slope(value));
      }
      const Tensor y = formula.apply(x);
      EXPECT_EQ(y.dtype(), dtype());
      expect_values(y, values, tolerance());
      backward(sum(y));
      if (x.numel() > 0) expect_values(x.grad(), slopes, tolerance());
    }
}

TEST_P(HardActivationTest, InfinityAndNan_MatchLimits) {
  const Tensor x = tensor_of({-inf, -1e30, -3, 0, 3, 1e30, inf, nan_value}, {8}, dtype(), device());
  const auto last = [&](const Tensor& y) {
    const std::vector<double> values = values_of(y);
    EXPECT_TRUE(std::isnan(values.back()));
    return std::vector<double>(values.begin(), values.end() - 1);
  };
  const auto high = values_of(tensor_of({1e30}, {1}, dtype()))[0];
  auto values = last(silu(x));
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[3], 0);
  EXPECT_EQ(values[5], high);
  EXPECT_EQ(values[6], inf);
  EXPECT_EQ(last(hardswish(x)), (std::vector<double>{0, 0, 0, 0, 3, high, inf}));
  EXPECT_EQ(last(hardsigmoid(x)), (std::vector<double>{0, 0, 0, 0.5, 1, 1, 1}));
  for (const Formula& formula : formulas) {
    Tensor leaf = x.detach().clone().set_requires_grad();
    backward(sum(formula.apply(leaf)));
    const std::vector<double> slopes = values_of(leaf.grad());
    EXPECT_EQ(slopes[0], 0);
    EXPECT_EQ(slopes[1], 0);
    EXPECT_EQ(slopes[6], formula.apply == hardsigmoid ? 0 : 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, HardActivationTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class HardActivationOnDevice : public testing::TestWithParam<Device> {};

TEST_P(HardActivationOnDevice, Gradients_MatchCentralDifferences) {
  for (const Formula& formula : formulas) {
    for (const auto& [low, high] : {std::pair{-5.0, -3.1}, {-2.9, 2.9}, {3.1, 5.0}})
      expect_gradients([&](const auto& in) { return formula.apply(in[0]); },
                       {random_tensor({7}, DType::f64, GetParam(), 5, low, high)});
    expect_gradients([&](const auto& in) { return formula.apply(in[0].transpose()); },
                     {random_tensor({4, 3}, DType::f64, GetParam(), 7)});
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, HardActivationOnDevice, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
