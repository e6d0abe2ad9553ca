#include "tandem/ops/bias.h"

#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

class BiasTest : public OpTest {};

TEST_P(BiasTest, AddsBiasToEveryRow) {
  for (const Shape& shape :
       {Shape{5}, Shape{1, 1}, Shape{17, 33}, Shape{2, 3, 4}, Shape{0, 4}, Shape{3, 0}}) {
    const Tensor x = random_tensor(shape, dtype(), device(), 1);
    const Tensor bias = random_tensor({shape.back()}, dtype(), device(), 2);
    const auto values = values_of(x), bias_values = values_of(bias);
    std::vector<double> expected;
    for (std::size_t i = 0; i < values.size(); ++i)
      expected.push_back(values[i] + bias_values[i % bias_values.size()]);
    EXPECT_EQ(add_bias(x, bias).shape(), shape);
    expect_values(add_bias(x, bias), expected, tolerance());
  }
}

TEST_P(BiasTest, MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("bias_add"))
    expect_golden(one, {"x", "bias"}, dtype(), device(), tolerance(),
                  [](const auto& in) { return add_bias(in[0], in[1]); });
}

INSTANTIATE_TEST_SUITE_P(Devices, BiasTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

TEST(Bias, Gradient_MatchesCentralDifferences) {
  for (Device device : test_devices())
    expect_gradients(
        [](const auto& in) { return add_bias(in[0], in[1]); },
        {random_tensor({2, 3, 4}, DType::f64, device, 1), random_tensor({4}, DType::f64, device, 2)});
}

TEST(Bias, BadShapes_ErrorNamesBoth) {
  const Tensor x = random_tensor({2, 3}, DType::f32, cpu_device, 1);
  EXPECT_EQ(error_text([&] { add_bias(x, random_tensor({4}, DType::f32, cpu_device, 2)); }),
            "[add_bias] expected shapes (…, n) and (n), got [2, 3] and [4]");
  EXPECT_EQ(error_text([&] {
              add_bias(x, random_tensor({1, 3}, DType::f32, cpu_device, 2));
            }),
            "[add_bias] expected shapes (…, n) and (n), got [2, 3] and [1, 3]");
  EXPECT_EQ(error_text([&] { add_bias(x, random_tensor({3}, DType::f64, cpu_device, 2)); }),
            "[add_bias] expected tensors of one dtype, got f32 and f64");
}

}  // namespace
}  // namespace tandem
