#include "tandem/ops/mse.h"

#include "tandem/ops/activation.h"
#include "tandem/ops/one_hot.h"
#include "tests/golden/golden.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class MseTest : public OpTest {};

TEST_P(MseTest, MatchesPyTorch) {
  int count = 0;
  for (const golden::Case& one : golden::load("training")) {
    if (one.params.at("op") != "mse_loss") continue;
    SCOPED_TRACE(one.name);
    ++count;
    const auto stored = [&](const char* key) {
      const golden::Array& array = one.array(key);
      return tensor_of(array.values<double>(), Shape(std::span<const std::int64_t>(array.shape)), dtype(),
                       device());
    };
    Tensor x = stored("x").set_requires_grad(), target = stored("target").set_requires_grad();
    const Tensor loss = mse_loss(x, target);
    EXPECT_EQ(loss.shape(), Shape());
    expect_values(loss, one.array("expected").values<double>(), tolerance());
    backward(loss);
    expect_values(x.grad(), one.array("grad_x").values<double>(), tolerance());
    expect_values(target.grad(), one.array("grad_target").values<double>(), tolerance());
  }
  EXPECT_GE(count, 5);
}

TEST_P(MseTest, OneHot_IsOneAtTheLabel) {
  for (const DType label_dtype : {DType::i32, DType::i64}) {
    const Tensor rows = one_hot(tensor_of({2, 0, 1, 2}, {4}, label_dtype, device()), 3, dtype());
    EXPECT_EQ(rows.dtype(), dtype());
    EXPECT_EQ(rows.shape(), (Shape{4, 3}));
    expect_values(rows, {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}, 0);
  }
  EXPECT_EQ(one_hot(tensor_of({}, {0}, DType::i32, device()), 5, dtype()).shape(), (Shape{0, 5}));
}

INSTANTIATE_TEST_SUITE_P(Devices, MseTest, testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})),
                         op_case_name);

class MseGradient : public testing::TestWithParam<Device> {};

TEST_P(MseGradient, MatchesCentralDifferences) {
  const auto input = [](const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, DType::f64, GetParam(), seed);
  };
  expect_gradients([](const auto& in) { return mse_loss(in[0], in[1]); },
                   {input({3, 4}, 1), input({3, 4}, 2)});
  const Tensor labels = tensor_of({1, 3, 0}, {3}, DType::i32, GetParam());
  expect_gradients([&](const auto& in) { return mse_loss(sigmoid(in[0]), one_hot(labels, 4, DType::f64)); },
                   {input({3, 4}, 1)});
}

INSTANTIATE_TEST_SUITE_P(Devices, MseGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Mse, BadInput_ErrorNamesOperationAndValues) {
  const auto of = [](const Shape& shape, DType dtype) { return random_tensor(shape, dtype, cpu_device, 1); };
  EXPECT_EQ(error_text([&] {
              mse_loss(of({2, 3}, DType::f32), of({3}, DType::f32));
            }),
            "[mse_loss] expected two tensors of the same shape, got [2, 3] and [3]");
  EXPECT_EQ(error_text([&] { mse_loss(of({0}, DType::f32), of({0}, DType::f32)); }),
            "[mse_loss] expected at least one element, got shape [0]");
  EXPECT_EQ(error_text([&] { mse_loss(of({1}, DType::i32), of({1}, DType::i32)); }),
            "[mse_loss] expected a floating dtype, got i32");
  EXPECT_EQ(error_text([&] {
              one_hot(tensor_of({0, 3}, {2}, DType::i32), 3);
            }),
            "[one_hot] expected labels from 0 to 2, got 3 at position 1");
  EXPECT_EQ(error_text([&] { one_hot(tensor_of({0}, {1}, DType::f32), 3); }),
            "[one_hot] expected labels of i32 or i64, got f32");
  EXPECT_EQ(error_text([&] { one_hot(tensor_of({0}, {1}, DType::i32), 0); }),
            "[one_hot] expected at least one class, got 0");
}

}  // namespace
}  // namespace tandem
