#include "tandem/ops/concat.h"

#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

class ConcatTest : public OpTest {};

TEST_P(ConcatTest, ConcatenatesAlongAnyAxis) {
  const Tensor a = tensor_of({1, 2, 3, 4}, {2, 2}, dtype(), device());
  const Tensor b = tensor_of({5, 6}, {1, 2}, dtype(), device());
  const Tensor rows = concat({a, b}, 0);
  EXPECT_EQ(rows.shape(), (Shape{3, 2}));
  EXPECT_EQ(rows.device(), device());
  expect_values(rows, {1, 2, 3, 4, 5, 6}, 0);
  const Tensor columns = concat({a, b.reshape({2, 1}), a.transpose()}, -1);
  EXPECT_EQ(columns.shape(), (Shape{2, 5}));
  expect_values(columns, {1, 2, 5, 1, 3, 3, 4, 6, 2, 4}, 0);
}

TEST_P(ConcatTest, AcceptsEmptyTensorsAndOneTensor) {
  const Tensor a = tensor_of({1, 2}, {2, 1}, dtype(), device()),
               none = tensor_of({}, {2, 0}, dtype(), device());
  expect_values(concat({none, a, none}, 1), {1, 2}, 0);
  EXPECT_EQ(concat({none, none}, 0).shape(), (Shape{4, 0}));
  EXPECT_NE(concat({a}, 0).bytes(), a.bytes());
}

INSTANTIATE_TEST_SUITE_P(Devices, ConcatTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class ConcatGolden : public OpTest {};

TEST_P(ConcatGolden, MatchesPyTorch) {
  expect_golden("concat", dtype(), device(), tolerance(),
                [](const golden::Case& one, const std::vector<Tensor>& in) {
                  return concat(in, one.params.at("axis").get<int>());
                });
}

INSTANTIATE_TEST_SUITE_P(Devices, ConcatGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class ConcatDevice : public testing::TestWithParam<Device> {};

TEST_P(ConcatDevice, Gradients_MatchCentralDifferences) {
  expect_gradients(
      [](const auto& in) {
        return concat({in[0], in[1].transpose(), in[0]}, 1);
      },
      {random_tensor({2, 3}, DType::f64, GetParam(), 1), random_tensor({4, 2}, DType::f64, GetParam(), 2)});
}

TEST_P(ConcatDevice, OneInputRequiresGrad_OthersGetNone) {
  Tensor a = random_tensor({2}, DType::f32, GetParam(), 1).set_requires_grad();
  const Tensor b = random_tensor({3}, DType::f32, GetParam(), 2);
  backward(concat({b, a}, 0), tensor_of({1, 2, 3, 4, 5}, {5}, DType::f32, GetParam()));
  expect_values(a.grad(), {4, 5}, 0);
  EXPECT_FALSE(concat({b, b}, 0).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, ConcatDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Concat, BadOperands_ErrorNamesValues) {
  const Tensor a = random_tensor({2, 3}, DType::f32, cpu_device, 1);
  EXPECT_EQ(error_text([] { concat(std::span<const Tensor>(), 0); }),
            "[concat] expected at least one tensor, got none");
  EXPECT_EQ(error_text([&] { concat({a, a}, 2); }), "[concat] expected an axis from -2 to 1, got 2");
  EXPECT_EQ(error_text([&] {
              concat({a, a.transpose()}, 0);
            }),
            "[concat] expected shapes that differ only along axis 0, got [2, 3] and [3, 2]");
  EXPECT_EQ(error_text([&] {
              concat({a, a.reshape({6})}, 1);
            }),
            "[concat] expected shapes that differ only along axis 1, got [2, 3] and [6]");
  EXPECT_EQ(error_text([&] {
              concat({a, random_tensor({2, 3}, DType::f64, cpu_device, 1)}, 0);
            }),
            "[concat] expected tensors of one dtype, got f32 and f64");
  EXPECT_EQ(error_text([&] {
              concat({a, Tensor()}, 0);
            }),
            "[concat] expected a tensor, got an undefined one");
  EXPECT_EQ(error_text([&] { concat({random_tensor({}, DType::f32, cpu_device, 1)}, 0); }),
            "[concat] expected tensors of at least one axis, got shape []");
}

}  // namespace
}  // namespace tandem
