// Tensors from braced lists, reading with conversion, and A[i].
#include <cmath>
#include <limits>

#include "tandem/ops/cast.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class TensorValues : public testing::TestWithParam<Device> {};

TEST_P(TensorValues, BracedList_IsAVectorOfF32) {
  const Tensor x({1., 2.5, -3.});
  EXPECT_EQ(x.shape(), (Shape{3}));
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.device(), cpu_device);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2.5f, -3}));
  const Tensor labels({0, 2, 1}, DType::i64, GetParam());
  EXPECT_EQ(labels.device(), GetParam());
  EXPECT_EQ(labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 2, 1}));
  const Tensor one = {7};
  EXPECT_EQ(one.shape(), (Shape{1}));
  const Tensor none = {};
  EXPECT_FALSE(none.defined());
}

TEST_P(TensorValues, NestedList_IsAMatrix) {
  const Tensor x({{1., 2., 3.}, {4., 5., 6.}}, DType::f64, GetParam());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(error_text([] { Tensor({{1., 2.}, {3.}}); }), "[tensor] expected rows of 2 values, got one of 1");
}

TEST_P(TensorValues, ItemAndToVector_ConvertLikeCast) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor x({1.75, -2.5, 3e9, -inf, nan}, DType::f32, GetParam());
  EXPECT_EQ(x[0].item<double>(), 1.75);
  EXPECT_EQ(x[0].item<std::int64_t>(), 1);
  EXPECT_EQ(static_cast<float>(x[1].item<BFloat16>()), -2.5f);
  EXPECT_EQ(x.to_vector<std::int32_t>(), cast(x, DType::i32).to_vector<std::int32_t>());
  EXPECT_EQ(x.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, -2, std::numeric_limits<std::int32_t>::max(),
                                       std::numeric_limits<std::int32_t>::min(), 0}));
  EXPECT_EQ(x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0, 255, 0, 0}));
  const Tensor halves({0.5, 1.5}, DType::bf16, GetParam());
  EXPECT_EQ(halves.to_vector<float>(), (std::vector<float>{0.5f, 1.5f}));
  EXPECT_EQ(Tensor({3., 4.}, DType::i64, GetParam()).to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST_P(TensorValues, Index_IsAViewWithoutTheFirstAxis) {
  const Tensor x = random_tensor({4, 3, 2}, DType::f32, GetParam(), 1);
  EXPECT_EQ(x[1].shape(), (Shape{3, 2}));
  EXPECT_EQ(values_of(x[1]), values_of(x.slice(0, 1, 2)));
  EXPECT_EQ(values_of(x[-1]), values_of(x[3]));
  EXPECT_EQ(x[2].bytes(), x.slice(0, 2, 3).bytes());
  EXPECT_EQ(x[0][1][1].rank(), 0);
  EXPECT_EQ(x[0][1][1].item<float>(), x.to_vector<float>()[3]);
  EXPECT_EQ(values_of(x.transpose(0, 1)[2]), values_of(x.slice(1, 2, 3)));
}

TEST_P(TensorValues, Index_IsDifferentiable) {
  for (const std::int64_t index : {0, 2, -1})
    expect_gradients([index](const auto& in) { return in[0][index]; },
                     {random_tensor({3, 4}, DType::f64, GetParam(), 2)});
  expect_gradients([](const auto& in) { return multiply(in[0].transpose()[1], in[0][0][1]); },
                   {random_tensor({3, 2}, DType::f64, GetParam(), 3)});
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorValues, testing::ValuesIn(test_devices()), device_name);

TEST(TensorIndex, OutOfRange_Throws) {
  const Tensor x({1., 2., 3.});
  EXPECT_EQ(error_text([&] { x[3]; }), "[index] expected an index from -3 to 2, got 3");
  EXPECT_EQ(error_text([&] { x[-4]; }), "[index] expected an index from -3 to 2, got -4");
  EXPECT_EQ(error_text([&] { x[0][0]; }), "[index] expected a tensor of one axis or more, got a scalar");
  EXPECT_EQ(error_text([] { Tensor()[0]; }), "[index] expected a tensor, got an undefined one");
}

TEST(TensorDevice, ToByName_UnknownOrMissing_Throws) {
  const Tensor x({1.});
  EXPECT_EQ(x.to("cpu").bytes(), x.bytes());
  EXPECT_EQ(error_text([&] { x.to("gpu"); }), "expected a device such as cpu, cuda or cuda:1, got 'gpu'");
  EXPECT_NE(error_text([&] { x.to("cuda:99"); }).find("device cuda:99 is not available"), std::string::npos);
}

// Copies of a handle share whether a gradient is required.
TEST(Freezing, ThroughACopyOfTheHandle_StopsGradients) {
  Tensor w = Tensor({1., 2.}).set_requires_grad(), copy = w;
  sum(multiply(w, w)).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{2, 4}));
  copy.set_requires_grad(false);
  EXPECT_FALSE(w.requires_grad());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(multiply(w, w).requires_grad());
  Tensor x = Tensor({3., 4.}).set_requires_grad();
  sum(multiply(w, x)).backward();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 2}));
  copy.set_requires_grad();
  sum(multiply(w, x)).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(Freezing, BetweenForwardAndBackward_KeepsTheGradientUndefined) {
  Tensor w = Tensor({1., 2.}).set_requires_grad(), x = Tensor({3., 4.}).set_requires_grad();
  const Tensor loss = sum(multiply(w, x));
  w.set_requires_grad(false);
  loss.backward();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace tandem
