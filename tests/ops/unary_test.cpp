#include "tandem/ops/unary.h"

#include <limits>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

using Function = Tensor (*)(const Tensor&);
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

const std::vector<Shape> shapes = {{}, {0}, {1}, {7}, {33}, {17, 5}, {257}, {3, 0, 2}, {100003}};

template <class F>
std::vector<double> mapped(const Tensor& x, F f) {
  std::vector<double> values = values_of(x);
  for (double& value : values) value = f(value);
  return values;
}

class UnaryTest : public OpTest {};

TEST_P(UnaryTest, AnyShape_MatchesFormula) {
  for (const Shape& shape : shapes) {
    const Tensor x = random_tensor(shape, dtype(), device(), 1, -3, 3);
    const Tensor positive = random_tensor(shape, dtype(), device(), 2, 0.1, 9);
    const auto expect_result = [&](const Tensor& actual, const std::vector<double>& expected) {
      EXPECT_EQ(actual.shape(), shape);
      EXPECT_EQ(actual.dtype(), dtype());
      EXPECT_EQ(actual.device(), device());
      expect_values(actual, expected, tolerance());
    };
    expect_result(exp(x), mapped(x, [](double v) { return std::exp(v); }));
    expect_result(log(positive), mapped(positive, [](double v) { return std::log(v); }));
    expect_result(sqrt(positive), mapped(positive, [](double v) { return std::sqrt(v); }));
  }
}

TEST_P(UnaryTest, InfinityAndNan_MatchLimits) {
  const Tensor x = tensor_of({-inf, -1e30, 0, inf, nan_value}, {5}, dtype(), device());
  expect_values(exp(x), {0, 0, 1, inf, nan_value}, 0);
  expect_values(log(x), {nan_value, nan_value, -inf, inf, nan_value}, 0);
  expect_values(sqrt(x), {nan_value, nan_value, 0, inf, nan_value}, 0);
  expect_values(square(tensor_of({-inf, -3, 0, inf, nan_value}, {5}, dtype(), device())),
                {inf, 9, 0, inf, nan_value}, 0);
  expect_values(absolute(tensor_of({-inf, -3, 0, inf, nan_value}, {5}, dtype(), device())),
                {inf, 3, 0, inf, nan_value}, 0);
  expect_values(sign(x), {-1, -1, 0, 1, nan_value}, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, UnaryTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class UnaryAllTypes : public OpTest {};

TEST_P(UnaryAllTypes, SquareAbsoluteAndSign_MatchFormula) {
  const double low = dtype() == DType::u8 ? 0 : -12;
  for (const Shape& shape : shapes) {
    const Tensor x = random_tensor(shape, dtype(), device(), 3, low, 12);
    expect_values(square(x), mapped(x, [](double v) { return v * v; }), tolerance());
    expect_values(absolute(x), mapped(x, [](double v) { return std::abs(v); }), 0);
    expect_values(sign(x), mapped(x, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; }), 0);
  }
  const Tensor x = random_tensor({6, 5}, dtype(), device(), 4, low, 12);
  expect_values(square(x.transpose()), values_of(square(x.transpose().clone())), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, UnaryAllTypes,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class UnaryDevice : public testing::TestWithParam<Device> {};

TEST_P(UnaryDevice, Gradients_MatchCentralDifferences) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 4}})
    for (Function f : {Function(exp), Function(log), Function(sqrt), Function(square), Function(absolute)})
      expect_gradients([f](const auto& in) { return f(in[0]); },
                       {random_tensor(shape, DType::f64, GetParam(), 5, 0.5, 2)});
  for (Function f : {Function(exp), Function(square), Function(absolute)})
    expect_gradients([f](const auto& in) { return f(in[0].transpose()); },
                     {random_tensor({4, 3}, DType::f64, GetParam(), 6, -2, -0.5)});
}

TEST_P(UnaryDevice, AbsoluteGradientAtZero_IsZero) {
  Tensor x = tensor_of({-2, 0, 3}, {3}, DType::f32, GetParam()).set_requires_grad();
  backward(sum(absolute(x)));
  expect_values(x.grad(), {-1, 0, 1}, 0);
}

TEST_P(UnaryDevice, SignGradient_IsZero) {
  Tensor x = tensor_of({-2, 0, 3}, {3}, DType::f32, GetParam()).set_requires_grad();
  backward(sum(sign(x)));
  expect_values(x.grad(), {0, 0, 0}, 0);
}

TEST_P(UnaryDevice, Integers_WrapAround) {
  const auto lowest = std::numeric_limits<std::int32_t>::min();
  const Tensor x = Tensor::from(std::vector<std::int32_t>{lowest, 65536, 46341}, {3}, GetParam());
  EXPECT_EQ(absolute(x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{lowest, 65536, 46341}));
  EXPECT_EQ(square(x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0, -2147479015}));
  const Tensor minus_one = Tensor::from(std::vector<std::int32_t>{-1}, {}, GetParam());
  EXPECT_EQ(divide(x, minus_one).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{lowest, -65536, -46341}));
  EXPECT_EQ(add(x, x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 131072, 92682}));
  EXPECT_EQ(add(x, minus_one).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(), 65535, 46340}));
}

// The CPU has its own f32 exp: compared with f64 over its whole range, within 2 ulp.
TEST_P(UnaryDevice, ExpF32_IsWithinTwoUlp) {
  std::vector<float> arguments;
  for (float x = -104; x < 89; x += 0.0137f) arguments.push_back(x);
  for (float x : {88.722f, 88.723f, 88.73f, 1000.0f, -87.3f, -87.4f, -103.9f, -104.1f, -1000.0f, 1e-20f})
    arguments.push_back(x);
  const auto count = static_cast<std::int64_t>(arguments.size());
  const auto results = exp(Tensor::from(arguments, {count}, GetParam())).to_vector<float>();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const double exact = std::exp(static_cast<double>(arguments[i]));
    const auto rounded = static_cast<float>(exact);
    if (std::isinf(rounded)) {
      ASSERT_EQ(results[i], rounded) << arguments[i];
      continue;
    }
    const double ulp = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded;
    ASSERT_LE(std::abs(results[i] - exact), 2 * ulp) << "exp(" << arguments[i] << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, UnaryDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Unary, UnsupportedInput_ErrorNamesDtypes) {
  const Tensor x = tensor_of({1, 2}, {2}, DType::i32);
  EXPECT_EQ(error_text([&] { exp(x); }), "[exp] expected dtype f32 or f64 or bf16, got i32");
  EXPECT_EQ(error_text([&] { log(x); }), "[log] expected dtype f32 or f64 or bf16, got i32");
  EXPECT_EQ(error_text([&] { sqrt(Tensor()); }), "[sqrt] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
