#include "tandem/ops/activation.h"

#include <algorithm>
#include <limits>

#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

using Function = Tensor (*)(const Tensor&);
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

double exact_sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

class ActivationTest : public OpTest {};

TEST_P(ActivationTest, AnyShape_MatchesFormula) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{17, 33}, Shape{257}, Shape{2, 0, 3}, Shape{100003}}) {
    const Tensor x = random_tensor(shape, dtype(), device(), 1, -9, 9);
    std::vector<double> expected[3];
    for (double value : values_of(x)) {
      expected[0].push_back(exact_sigmoid(value));
      expected[1].push_back(std::tanh(value));
      expected[2].push_back(std::max(value, 0.0));
    }
    const Tensor actual[3] = {sigmoid(x), tanh(x), relu(x)};
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(actual[k].shape(), shape);
      EXPECT_EQ(actual[k].dtype(), dtype());
      expect_values(actual[k], expected[k], tolerance());
    }
  }
}

TEST_P(ActivationTest, InfinityAndNan_MatchLimits) {
  const Tensor x = tensor_of({-inf, -1e30, 0, 1e30, inf, nan_value}, {6}, dtype(), device());
  expect_values(sigmoid(x), {0, 0, 0.5, 1, 1, nan_value}, 0);
  expect_values(tanh(x), {-1, -1, 0, 1, 1, nan_value}, 0);
  const auto rectified = values_of(relu(x));
  EXPECT_EQ(rectified[0], 0);
  EXPECT_EQ(rectified[4], inf);
  EXPECT_TRUE(std::isnan(rectified[5]));
}

TEST_P(ActivationTest, StridedInput_MatchesContiguous) {
  const Tensor x = random_tensor({6, 5}, dtype(), device(), 2);
  for (Function f : {Function(sigmoid), Function(tanh), Function(relu)})
    expect_values(f(x.transpose()), values_of(f(x.transpose().clone())), tolerance() * 0.1);
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class ActivationGolden : public OpTest {};

TEST_P(ActivationGolden, MatchesPyTorch) {
  for (const auto& [name, function] :
       std::vector<std::pair<std::string, Function>>{{"sigmoid", sigmoid}, {"tanh", tanh}, {"relu", relu}})
    expect_golden(name, dtype(), device(), tolerance(),
                  [&](const golden::Case&, const std::vector<Tensor>& in) { return function(in[0]); });
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class ActivationDevice : public testing::TestWithParam<Device> {};

TEST_P(ActivationDevice, Gradients_MatchCentralDifferences) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 4}})
    for (Function f : {Function(sigmoid), Function(tanh), Function(relu)}) {
      expect_gradients([f](const auto& in) { return f(in[0]); },
                       {random_tensor(shape, DType::f64, GetParam(), 5, 0.1, 2)});
      expect_gradients([f](const auto& in) { return f(in[0]); },
                       {random_tensor(shape, DType::f64, GetParam(), 6, -2, -0.1)});
    }
  expect_gradients([](const auto& in) { return tanh(in[0].transpose()); },
                   {random_tensor({4, 3}, DType::f64, GetParam(), 7)});
}

TEST_P(ActivationDevice, ReluGradientAtZero_IsZero) {
  Tensor x = tensor_of({-2, 0, 3}, {3}, DType::f32, GetParam()).set_requires_grad();
  backward(sum(relu(x)));
  expect_values(x.grad(), {0, 0, 1}, 0);
}

// The CPU has its own f32 implementations: check the relative error for small and large arguments.
TEST_P(ActivationDevice, SigmoidAndTanhF32_AreAccurate) {
  std::vector<float> arguments;
  for (float x = -30; x < 30; x += 0.00137f) arguments.push_back(x);
  for (float x : {1e-38f, -1e-30f, 1e-9f, -1e-4f, 0.01f, 0.6249f, 0.625f, -0.6251f, 87.0f, -87.0f, 700.0f})
    arguments.push_back(x);
  const Tensor x = Tensor::from(arguments, {static_cast<std::int64_t>(arguments.size())}, GetParam());
  const auto sigmoids = sigmoid(x).to_vector<float>(), tanhs = tanh(x).to_vector<float>();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const double exact_s = exact_sigmoid(arguments[i]),
                 exact_t = std::tanh(static_cast<double>(arguments[i]));
    ASSERT_LE(std::abs(sigmoids[i] - exact_s), 3e-7 * exact_s) << "sigmoid(" << arguments[i] << ")";
    ASSERT_LE(std::abs(tanhs[i] - exact_t), 3e-7 * std::abs(exact_t)) << "tanh(" << arguments[i] << ")";
  }
  EXPECT_TRUE(std::signbit(tanh(Tensor::from(std::vector{-0.0f}, {1}, GetParam())).item<float>()));
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Activation, UnsupportedInput_ErrorNamesDtypes) {
  const Tensor x = tensor_of({1, 2}, {2}, DType::u8);
  EXPECT_EQ(error_text([&] { sigmoid(x); }), "[sigmoid] expected dtype f32 or f64 or bf16, got u8");
  EXPECT_EQ(error_text([&] { relu(Tensor()); }), "[relu] expected a tensor, got an undefined one");
}

TEST(Activation, Rows_AreInTheOrderOfTheEnumAndApplyTheirFunction) {
  const Tensor x = random_tensor({40}, DType::f32, cpu_device, 3);
  for (std::size_t i = 0; i < activations().rows().size(); ++i) {
    const ActivationRow& row = activations().rows()[i];
    EXPECT_EQ(row.activation, static_cast<Activation>(i));
    EXPECT_EQ(name_of(row.activation), row.name);
    EXPECT_EQ(parse_activation(row.name), row.activation);
    EXPECT_EQ(values_of(row.apply(x)), values_of(activate(row.activation, x))) << row.name;
  }
  EXPECT_EQ(activations().list().find("sigmoid, tanh, relu"), 0u);
  EXPECT_EQ(error_text([] { parse_activation("swish"); }),
            "[activation] expected one of " + activations().list() + ", got 'swish'");
}

}  // namespace
}  // namespace tandem
