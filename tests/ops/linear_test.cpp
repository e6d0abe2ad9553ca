#include "tandem/ops/linear.h"

#include <array>

#include "tandem/ops/bias.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class LinearTest : public OpTest {};

TEST_P(LinearTest, MatchesMatmulPlusBias) {
  for (const auto& [n, in, out] : {std::array{1, 1, 1}, {3, 5, 2}, {16, 784, 10}, {0, 4, 3}}) {
    const Tensor x = random_tensor({n, in}, dtype(), device(), 1, -1, 1);
    const Tensor weight = random_tensor({out, in}, dtype(), device(), 2, -1, 1);
    const Tensor bias = random_tensor({out}, dtype(), device(), 3);
    const Tensor product = matmul(x, weight.transpose());
    expect_values(linear(x, weight, Tensor()), values_of(product), tolerance());
    expect_values(linear(x, weight, bias), values_of(add_bias(product, bias)), tolerance());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

// Few rows in bf16 products without a gradient: a kernel of its own on CUDA.
TEST_P(LinearTest, FewRowsInBf16Precision_MatchF64) {
  if (dtype() == DType::f64) GTEST_SKIP() << "has no other precision";
  const MatmulPrecisionScope scope(MatmulPrecision::bf16);
  const NoGrad no_grad;
  for (const auto& [n, in, out] :
       {std::array{1, 512, 1000}, {2, 2048, 37}, {3, 4, 5}, {4, 132, 1}, {5, 64, 8}, {1, 6, 9}}) {
    const Tensor x = random_tensor({n, in}, dtype(), device(), 1, -1, 1);
    const Tensor weight = random_tensor({out, in}, dtype(), device(), 2, -1, 1);
    const Tensor bias = random_tensor({out}, dtype(), device(), 3, -4, 4);
    const auto wide = [](const Tensor& tensor) { return cast(tensor, DType::f64); };
    const Tensor product = matmul(wide(x), wide(weight).transpose());
    expect_values(linear(x, weight, Tensor()), values_of(product), 1e-2);
    expect_values(linear(x, weight, bias), values_of(add_bias(product, wide(bias))), 1e-2);
    // Rows of a view, and a weight that is not aligned.
    expect_values(linear(x.slice(1, 1, in), weight.slice(1, 1, in), bias),
                  values_of(add_bias(
                      matmul(wide(x.slice(1, 1, in)), wide(weight.slice(1, 1, in)).transpose()), wide(bias))),
                  1e-2);
  }
}

class LinearGradient : public testing::TestWithParam<Device> {};

TEST_P(LinearGradient, MatchesCentralDifferences) {
  const auto input = [](const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, DType::f64, GetParam(), seed);
  };
  expect_gradients([](const auto& in) { return linear(in[0], in[1], in[2]); },
                   {input({4, 3}, 1), input({5, 3}, 2), input({5}, 3)});
  expect_gradients([](const auto& in) { return linear(in[0], in[1], Tensor()); },
                   {input({1, 3}, 1), input({2, 3}, 2)});
}

TEST_P(LinearGradient, OnlyWeightRequiresGrad_GradIsDenseAndOthersGetNone) {
  const Tensor x = random_tensor({4, 3}, DType::f64, GetParam(), 1);
  Tensor weight = random_tensor({5, 3}, DType::f64, GetParam(), 2).set_requires_grad();
  const Tensor bias = random_tensor({5}, DType::f64, GetParam(), 3);
  backward(sum(linear(x, weight, bias)));
  EXPECT_TRUE(weight.grad().is_contiguous());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(bias.grad().defined());
  const NoGrad no_grad;
  EXPECT_FALSE(linear(x, weight, bias).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Linear, ShapeMismatch_ErrorNamesShapes) {
  const auto of = [](const Shape& shape) { return random_tensor(shape, DType::f32, cpu_device, 1); };
  EXPECT_EQ(error_text([&] {
              linear(of({2, 3}), of({4, 5}), Tensor());
            }),
            "[linear] expected x (n, in) and weight (out, in), got [2, 3] and [4, 5]");
  EXPECT_EQ(error_text([&] {
              linear(of({2, 3, 4}), of({4, 4}), Tensor());
            }),
            "[linear] expected x (n, in) and weight (out, in), got [2, 3, 4] and [4, 4]");
  EXPECT_EQ(error_text([&] {
              linear(of({2, 3}), of({4, 3}), of({3}));
            }),
            "[linear] expected bias (4), got [3]");
  EXPECT_EQ(error_text([&] {
              linear(of({2, 3}), Tensor(), Tensor());
            }),
            "[linear] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
