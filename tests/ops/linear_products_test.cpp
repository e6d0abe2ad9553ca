#include "tandem/ops/linear_products.h"

#include <array>

#include "tandem/ops/linear.h"
#include "tandem/ops/version.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class LinearProductsTest : public OpTest {
 protected:
  std::vector<Version> versions() const {
    std::vector<Version> here;
    for (const Version version : all_versions)
      if (backend_of(version) == device().backend) here.push_back(version);
    return here;
  }
};

// linear() and its gradients are tested by themselves (linear_test.cpp).
TEST_P(LinearProductsTest, EveryVersion_MatchesLinearAndItsGradients) {
  for (const auto& [n, in, out] : {std::array{1, 1, 1}, {3, 5, 2}, {16, 784, 10}, {2, 7, 1025}, {0, 4, 3}}) {
    Tensor x = random_tensor({n, in}, dtype(), device(), 1, -1, 1).set_requires_grad();
    Tensor weight = random_tensor({out, in}, dtype(), device(), 2, -1, 1).set_requires_grad();
    const Tensor bias = random_tensor({out}, dtype(), device(), 3, -1, 1);
    const Tensor dy = random_tensor({n, out}, dtype(), device(), 4, -1, 1);
    const Tensor y = linear(x, weight, bias);
    backward(sum(y * dy));
    for (const Version version : versions()) {
      SCOPED_TRACE(name_of(version));
      expect_values(linear_output(x, weight, bias, version), values_of(y), tolerance());
      expect_values(linear_input_gradient(dy, weight, version), values_of(x.grad()), tolerance());
      expect_values(linear_weight_gradient(dy, x, version), values_of(weight.grad()), tolerance());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearProductsTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(LinearProducts, WrongShapesTypesAndVersions_ErrorNamesThem) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  EXPECT_EQ(error_text([&] {
              linear_output(of({2, 3}), of({4, 5}), of({4}), Version::reference);
            }),
            "[linear products] expected matrices (m, k) and (k, n), got [2, 3] and [5, 4]");
  EXPECT_EQ(error_text([&] {
              linear_output(of({2, 3}), of({4, 3}), of({3}), Version::parallel);
            }),
            "[linear products] expected bias (4), got [3]");
  EXPECT_EQ(error_text([&] {
              linear_input_gradient(of({2, 3}), of({3, 4}), Version::cuda_simple);
            }),
            "[linear products] expected a version that runs on cpu, got cuda-simple");
  EXPECT_EQ(error_text([&] {
              linear_input_gradient(of({2, 3}, DType::bf16), of({3, 4}, DType::bf16), Version::reference);
            }),
            "[linear products] expected dtype f32 or f64, got bf16");
}

}  // namespace
}  // namespace tandem
