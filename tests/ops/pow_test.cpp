#include "tandem/ops/pow.h"

#include <limits>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class PowTest : public OpTest {};

TEST_P(PowTest, AnyShape_MatchesFormula) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{33}, Shape{17, 5}, Shape{257}, Shape{10007}})
    for (const double exponent : {-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0}) {
      const Tensor x = random_tensor(shape, dtype(), device(), 1, 0.5, 3);
      std::vector<double> expected = values_of(x);
      for (double& value : expected) value = std::pow(value, exponent);
      const Tensor y = pow(x, exponent);
      EXPECT_EQ(y.shape(), shape);
      EXPECT_EQ(y.dtype(), dtype());
      expect_values(y, expected, tolerance());
    }
}

TEST_P(PowTest, SpecialValues_MatchStdPow) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor_of({-2, 0, inf, nan}, {4}, dtype(), device());
  expect_values(pow(x, 2), {4, 0, inf, nan}, 0);
  expect_values(pow(x, 3), {-8, 0, inf, nan}, 0);
  expect_values(pow(x, 0.5), {nan, 0, inf, nan}, 0);
  expect_values(pow(x, -1), {-0.5, inf, 0, nan}, 0);
  expect_values(pow(x, 0), {1, 1, 1, 1}, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, PowTest, testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})),
                         op_case_name);

class PowDevice : public testing::TestWithParam<Device> {};

TEST_P(PowDevice, Gradients_MatchCentralDifferences) {
  for (const double exponent : {-1.5, 0.0, 0.5, 1.0, 2.0, 3.0})
    expect_gradients([exponent](const auto& in) { return pow(in[0].transpose(), exponent); },
                     {random_tensor({3, 4}, DType::f64, GetParam(), 2, 0.5, 2)});
}

TEST_P(PowDevice, GradientAtZero_IsNotNanForWholeExponents) {
  for (const auto& [exponent, expected] :
       std::vector<std::pair<double, double>>{{0, 0}, {1, 1}, {2, 0}, {3, 0}}) {
    Tensor x = tensor_of({0}, {1}, DType::f32, GetParam()).set_requires_grad();
    pow(x, exponent).backward();
    EXPECT_EQ(x.grad().item<double>(), expected) << exponent;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PowDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Pow, UnsupportedInput_Throws) {
  const Tensor counts({1, 2}, DType::i32);
  EXPECT_EQ(error_text([&] { pow(counts, 2); }), "[pow] expected dtype f32 or f64 or bf16, got i32");
  EXPECT_EQ(error_text([] { pow(Tensor(), 2); }), "[pow] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
