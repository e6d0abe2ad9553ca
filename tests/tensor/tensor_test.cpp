#include "tandem/tensor/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tandem/ops/fill.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/layout.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

// The values 0, 1, 2, ... in the given shape.
Tensor counting(const Shape& shape, Device device, DType dtype = DType::f32) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0);
  return tensor_of(values, shape, dtype, device);
}

class TensorTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
};

TEST_P(TensorTest, From_HasShapeDtypeDeviceAndValues) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor x = Tensor::from(values, {2, 3}, device());
  EXPECT_TRUE(x.defined());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.strides(), (Dims{3, 1}));
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.device(), device());
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.to_vector<float>(), values);
}

TEST_P(TensorTest, Item_ReturnsTheOneElement) {
  EXPECT_EQ(Tensor::from(std::vector<std::int64_t>{7}, {}, device()).item<std::int64_t>(), 7);
  EXPECT_EQ(Tensor::from(std::vector<std::uint8_t>{9}, {1, 1}, device()).item<std::uint8_t>(), 9);
  EXPECT_EQ(counting({2, 3}, device()).slice(0, 1, 2).slice(1, 2, 3).item<float>(), 5);
}

TEST_P(TensorTest, Copy_SharesMemory_CloneDoesNot) {
  const Tensor x = counting({4}, device());
  const Tensor same = x, other = x.clone();
  clear(x);
  expect_values(same, {0, 0, 0, 0}, 0);
  expect_values(other, {0, 1, 2, 3}, 0);
  EXPECT_EQ(x.contiguous().bytes(), x.bytes());
}

TEST_P(TensorTest, Reshape_Contiguous_SharesMemory) {
  const Tensor x = counting({2, 6}, device());
  for (const Dims& sizes : {Dims{12}, Dims{3, 4}, Dims{-1, 4}, Dims{3, -1}, Dims{2, 2, -1}, Dims{-1}}) {
    const Tensor y = x.reshape(sizes);
    EXPECT_EQ(y.numel(), 12);
    EXPECT_EQ(y.bytes(), x.bytes());
    expect_values(y, values_of(x), 0);
  }
  EXPECT_EQ(x.reshape({-1, 4}).shape(), (Shape{3, 4}));
  EXPECT_EQ(counting({1}, device()).reshape({}).shape(), (Shape{}));
  EXPECT_EQ(counting({}, device()).reshape({1, 1}).shape(), (Shape{1, 1}));
}

TEST_P(TensorTest, Reshape_NonContiguous_Copies) {
  const Tensor x = counting({2, 3}, device()).transpose();
  expect_values(x.reshape({6}), {0, 3, 1, 4, 2, 5}, 0);
  EXPECT_NE(x.reshape({6}).bytes(), x.bytes());
}

TEST_P(TensorTest, PermuteAndTranspose_ReorderAxes) {
  const Tensor x = counting({2, 3, 4}, device());
  const Tensor y = x.permute({2, 0, 1});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.strides(), (Dims{1, 12, 4}));
  EXPECT_FALSE(y.is_contiguous());
  std::vector<double> expected;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) expected.push_back(12 * i + 4 * j + k);
  expect_values(y, expected, 0);
  expect_values(y.contiguous(), expected, 0);
  expect_values(y.permute({1, 2, 0}), values_of(x), 0);
  EXPECT_EQ(x.permute({-1, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(x.transpose().shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(x.transpose(0, 2).shape(), (Shape{4, 3, 2}));
}

TEST_P(TensorTest, Slice_SelectsARange) {
  const Tensor x = counting({4, 3}, device());
  expect_values(x.slice(0, 1, 3), {3, 4, 5, 6, 7, 8}, 0);
  expect_values(x.slice(1, 1, 3), {1, 2, 4, 5, 7, 8, 10, 11}, 0);
  expect_values(x.slice(-1, 2, 3).slice(0, 3, 4), {11}, 0);
  EXPECT_EQ(x.slice(0, 2, 2).shape(), (Shape{0, 3}));
  EXPECT_TRUE(x.slice(0, 1, 3).is_contiguous());
  EXPECT_FALSE(x.slice(1, 1, 3).is_contiguous());
}

TEST_P(TensorTest, BroadcastView_RepeatsAxesOfSizeOne) {
  const Tensor x = tensor_of({1, 2}, {2, 1}, DType::i32, device());
  const Tensor y = x.broadcast_view({2, 2, 3});
  EXPECT_EQ(y.strides(), (Dims{0, 1, 0}));
  expect_values(y, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}, 0);
  expect_values(y.contiguous(), values_of(y), 0);
}

TEST_P(TensorTest, CopyInto_AnyStridesAndElementSize_Copies) {
  for (DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
    const Tensor x = counting({13, 7}, device(), dtype);
    Tensor to = zeros({7, 20}, dtype, device());
    copy_into(to.slice(1, 3, 16), x.transpose());
    expect_values(to.slice(1, 3, 16).transpose(), values_of(x), 0);
    expect_values(to.slice(1, 0, 3), std::vector<double>(21, 0), 0);
    expect_values(to.slice(1, 16, 20), std::vector<double>(28, 0), 0);
  }
  const Tensor large = counting({300, 500}, device());  // many threads, many blocks
  expect_values(large.transpose().contiguous().transpose(), values_of(large), 0);
}

TEST_P(TensorTest, EmptyShape_AllOperationsWork) {
  const Tensor x = Tensor::empty({3, 0}, DType::f32, device());
  EXPECT_TRUE(x.defined());
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(x.to_vector<float>().empty());
  EXPECT_EQ(x.slice(0, 1, 2).shape(), (Shape{1, 0}));
  EXPECT_TRUE(x.slice(0, 1, 2).clone().to_vector<float>().empty());
  EXPECT_EQ(x.transpose().contiguous().shape(), (Shape{0, 3}));
  EXPECT_EQ(x.reshape({0, -1}).shape(), (Shape{0, 3}));
  EXPECT_EQ(x.reshape({-1, 5}).shape(), (Shape{0, 5}));
  EXPECT_EQ(x.to(cpu_device).shape(), (Shape{3, 0}));
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(Tensor::empty({big, 0, big}, DType::f64, device()).clone().numel(), 0);
}

TEST_P(TensorTest, To_OtherDevice_KeepsStrides) {
  const Tensor x = counting({4, 3}, cpu_device).transpose().slice(0, 1, 3);
  const Tensor there = x.to(device());
  EXPECT_EQ(there.device(), device());
  EXPECT_EQ(there.shape(), (Shape{2, 4}));
  expect_values(there, {1, 4, 7, 10, 2, 5, 8, 11}, 0);
  expect_values(there.cpu(), values_of(x), 0);
  EXPECT_EQ(there.to(device()).bytes(), there.bytes());
}

TEST_P(TensorTest, Views_AreDifferentiable) {
  const auto through = [&](const std::function<Tensor(const Tensor&)>& view) {
    expect_gradients([&](const auto& in) { return view(in[0]); },
                     {random_tensor({4, 6}, DType::f64, device(), 1)});
  };
  through([](const Tensor& x) { return x.reshape({3, -1}); });
  through([](const Tensor& x) { return x.transpose().reshape({8, 3}); });
  through([](const Tensor& x) { return x.permute({1, 0}); });
  through([](const Tensor& x) { return x.slice(1, 1, 4); });
  through([](const Tensor& x) { return x.slice(0, 1, 3).transpose().slice(0, 2, 5); });
  through([](const Tensor& x) { return x.transpose().contiguous(); });
  through([](const Tensor& x) { return x.clone(); });
  through([](const Tensor& x) { return x.to(cpu_device).to(x.device()); });
}

TEST_P(TensorTest, EmptySlice_HasZeroGradient) {
  Tensor x = counting({3}, device()).set_requires_grad();
  backward(sum(x.slice(0, 1, 1)));
  expect_values(x.grad(), {0, 0, 0}, 0);
}

TEST_P(TensorTest, NoGradAndDetach_RecordNothing) {
  Tensor x = counting({3}, device()).set_requires_grad();
  {
    const NoGrad no_grad;
    EXPECT_FALSE(multiply(x, x).requires_grad());
    EXPECT_FALSE(x.reshape({3, 1}).requires_grad());
    { const NoGrad inner; }
    EXPECT_FALSE(x.clone().requires_grad());
  }
  EXPECT_TRUE(multiply(x, x).requires_grad());
  const Tensor constant = x.detach();
  EXPECT_FALSE(constant.requires_grad());
  EXPECT_EQ(constant.bytes(), x.bytes());
  backward(sum(multiply(x, constant)));
  expect_values(x.grad(), {0, 1, 2}, 0);
}

TEST_P(TensorTest, Backward_SecondTimeOnSameTape_Throws) {
  Tensor x = counting({2}, device()).set_requires_grad();
  const Tensor y = multiply(x, x), loss = sum(y);
  backward(loss);
  EXPECT_EQ(error_text([&] { backward(sum(y)); }),
            "[backward] expected a tape that was not used before, got one that an earlier backward() freed "
            "(at 'multiply')");
  expect_values(x.grad(), {0, 2}, 0);
}

TEST_P(TensorTest, Backward_Repeated_AccumulatesGradients) {
  Tensor x = counting({2}, device()).set_requires_grad();
  for (int i = 0; i < 3; ++i) backward(sum(multiply(x, x)));
  expect_values(x.grad(), {0, 6}, 0);
  x.set_grad(Tensor());
  EXPECT_FALSE(x.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorTest, testing::ValuesIn(test_devices()), device_name);

class PermuteGolden : public OpTest {};

TEST_P(PermuteGolden, MatchesPyTorch) {
  expect_golden("permute", dtype(), device(), 0, [](const golden::Case& one, const std::vector<Tensor>& in) {
    const auto axes = one.params.at("axes").get<std::vector<std::int64_t>>();
    return in[0].permute(Dims(std::span<const std::int64_t>(axes)));
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, PermuteGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(Tape, OperationThatAcceptsTerms_GetsTheLastOneAndTheSumOfTheOthers) {
  const std::vector<std::vector<float>> expected[] = {{{3}}, {{5}, {3}}, {{12}, {3}}};
  for (const int uses : {1, 2, 3}) {
    Tensor x = Tensor({2.f}).set_requires_grad();
    Tensor y = x.detach().clone();
    const auto saved = std::make_shared<int>(0);
    std::vector<std::vector<float>> received;
    record(y, "twice", {&x}, [&received, saved](const Tensor& g) {
      received = {g.to_vector<float>()};
      return Gradients{multiply(g, 2)};
    });
    accept_terms(y, [&received, saved](const Tensor& first, const Tensor& second) {
      received = {first.to_vector<float>(), second.to_vector<float>()};
      return Gradients{multiply(add(first, second), 2)};
    });
    Tensor z = multiply(y, 3);
    if (uses > 1) z = add(z, multiply(y, 5));
    if (uses > 2) z = add(z, multiply(y, 7));
    backward(z, Tensor({1.f}));
    EXPECT_EQ(received, expected[uses - 1]);
    EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>{uses == 1 ? 6.f : uses == 2 ? 16.f : 30.f});
    EXPECT_EQ(saved.use_count(), 1) << "both functions are freed";
  }
}

// Recursive destruction of this chain would overflow the stack.
TEST(Tape, LongChain_IsDestroyedWithoutRecursion) {
  Tensor x = counting({1}, cpu_device).set_requires_grad();
  const Tensor one = counting({1}, cpu_device);
  Tensor y = x;
  for (int i = 0; i < 200'000; ++i) y = add(y, one);
  EXPECT_EQ(y.item<float>(), 0);
  y = Tensor();
  EXPECT_TRUE(x.requires_grad());
}

TEST(Tape, LongChain_BackwardSucceeds) {
  Tensor x = counting({1}, cpu_device).set_requires_grad();
  Tensor y = x;
  for (int i = 0; i < 20'000; ++i) y = y.reshape({1});
  backward(y);
  EXPECT_EQ(x.grad().item<float>(), 1);
}

TEST(Tape, RepeatedInput_GradientsAreSummed) {
  Tensor x = tensor_of({3}, {1}, DType::f64).set_requires_grad();
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = add(y, y);  // 2¹⁰ paths
  backward(y);
  EXPECT_EQ(x.grad().item<double>(), 1024);
}

TEST(Tape, Backward_InvalidArguments_Throw) {
  const Tensor x = counting({2}, cpu_device);
  EXPECT_EQ(error_text([&] { backward(x); }), "[backward] expected a loss of one element, got shape [2]");
  EXPECT_EQ(
      error_text([&] { backward(x.slice(0, 0, 1)); }),
      "[backward] expected a result that depends on a tensor with requires_grad, got one that does not");
  const Tensor leaf = counting({2}, cpu_device).set_requires_grad();
  EXPECT_EQ(error_text([&] { backward(leaf, counting({3}, cpu_device)); }),
            "[backward] expected a gradient of shape [2], got [3]");
}

TEST(Tape, SetRequiresGrad_NotAFloatingLeaf_Throws) {
  EXPECT_EQ(error_text([] { counting({2}, cpu_device, DType::i32).set_requires_grad(); }),
            "[requires_grad] expected a floating dtype, got i32");
  Tensor x = counting({1}, cpu_device).set_requires_grad();
  Tensor y = multiply(x, x);
  const std::string message =
      "[requires_grad] expected a leaf, got the result of 'multiply'; detach() it first";
  EXPECT_EQ(error_text([&] { y.set_requires_grad(false); }), message);
  backward(y);
  EXPECT_EQ(error_text([&] { y.set_requires_grad(); }), message);
  x.set_requires_grad(false);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_EQ(error_text([&] { x.set_grad(y); }), "[grad] expected a tensor that requires a gradient");
}

TEST(Tensor, Views_InvalidArguments_Throw) {
  const Tensor x = counting({2, 3}, cpu_device);
  EXPECT_EQ(error_text([&] { x.reshape({4}); }),
            "[reshape] expected a shape of 6 elements, got [4] for [2, 3]");
  EXPECT_EQ(error_text([&] {
              x.reshape({-1, 4});
            }),
            "[reshape] expected a shape of 6 elements, got [-1, 4] for [2, 3]");
  EXPECT_EQ(error_text([&] {
              x.reshape({-1, -1});
            }),
            "[reshape] expected sizes of 0 or more and at most one -1, got [-1, -1]");
  EXPECT_EQ(error_text([&] {
              x.reshape({-2, 3});
            }),
            "[reshape] expected sizes of 0 or more and at most one -1, got [-2, 3]");
  EXPECT_EQ(error_text([&] { x.permute({0}); }), "[permute] expected 2 axes for shape [2, 3], got [0]");
  EXPECT_EQ(error_text([&] { x.permute({0, 0}); }), "[permute] expected every axis once, got [0, 0]");
  EXPECT_EQ(error_text([&] { x.permute({0, 2}); }), "[permute] expected an axis from -2 to 1, got 2");
  EXPECT_EQ(error_text([&] { x.transpose(0, 5); }), "[transpose] expected an axis from -2 to 1, got 5");
  EXPECT_EQ(error_text([&] { x.slice(0, 1, 3); }),
            "[slice] expected 0 <= begin <= end <= 2 on axis 0, got 1 and 3");
  EXPECT_EQ(error_text([&] { x.slice(1, 2, 1); }),
            "[slice] expected 0 <= begin <= end <= 3 on axis 1, got 2 and 1");
  EXPECT_EQ(error_text([&] { x.slice(0, -1, 1); }),
            "[slice] expected 0 <= begin <= end <= 2 on axis 0, got -1 and 1");
  EXPECT_EQ(error_text([&] { x.size(2); }), "[size] expected an axis from -2 to 1, got 2");
  EXPECT_EQ(error_text([&] {
              x.broadcast_view({2, 4});
            }),
            "[broadcast] expected shapes that broadcast together, got [2, 3] and [2, 4]");
  EXPECT_EQ(error_text([&] { x.broadcast_view({3}); }),
            "[broadcast] expected a shape that broadcasts to [3], got [2, 3]");
}

TEST(Tensor, Read_WrongSizeOrUndefined_Throws) {
  const Tensor x = counting({2, 3}, cpu_device);
  EXPECT_EQ(error_text([&] { x.item<float>(); }),
            "[tensor] expected a tensor of 1 element, got shape [2, 3]");
  EXPECT_EQ(error_text([] { Tensor().item<float>(); }), "[tensor] expected a tensor, got an undefined one");
  EXPECT_EQ(error_text([] { Tensor().clone(); }), "[clone] expected a tensor, got an undefined one");
  EXPECT_EQ(error_text([] {
              Tensor::from(std::vector<float>{1, 2}, {3});
            }),
            "[tensor] expected 3 values for shape [3], got 2");
  EXPECT_EQ(error_text([&] { x.data<double>(); }), "[data] expected a tensor of f64, got f32");
}

TEST(Tensor, Empty_SizeOverflow_ThrowsBeforeAllocating) {
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ(error_text([&] {
              Tensor::empty({big, big}, DType::f64);
            }),
            "[tensor] [2147483648, 2147483648] of f64 has more bytes than 63 bits can count");
  EXPECT_NE(error_text([&] {
              Tensor::empty({std::int64_t{1} << 50}, DType::f32);
            }).find("[allocate] expected room for 4194304.00 GiB on cpu"),
            std::string::npos);
}

TEST(Layout, MakeLayout_MergesAdjacentAxes) {
  const auto dense = detail::make_layout<2>({2, 3, 4}, {Dims{12, 4, 1}, Dims{12, 4, 1}});
  EXPECT_EQ(dense.rank, 1);
  EXPECT_EQ(dense.sizes[0], 24);
  EXPECT_TRUE(dense.all_dense());
  const auto half = detail::make_layout<2>({2, 3, 4}, {Dims{12, 4, 1}, Dims{20, 4, 1}});
  EXPECT_EQ(half.rank, 2);
  EXPECT_EQ(half.sizes[1], 12);
  EXPECT_FALSE(half.is_dense(1));
  EXPECT_EQ(half.offsets(13)[1], 21);
  const auto scalar = detail::make_layout<1>({}, {Dims{}});
  EXPECT_EQ(scalar.numel, 1);
  EXPECT_TRUE(scalar.all_dense());
}

TEST(Layout, ForEachRun_CoversAnyRange) {
  const auto layout = detail::make_layout<1>({3, 5}, {Dims{7, 1}});
  for (std::int64_t begin = 0; begin <= 15; ++begin)
    for (std::int64_t end = begin; end <= 15; ++end) {
      std::int64_t next = begin;
      detail::for_each_run(layout, begin, end, [&](const auto& offset, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i, ++next) EXPECT_EQ(offset[0] + i, next / 5 * 7 + next % 5);
      });
      EXPECT_EQ(next, end);
    }
}

}  // namespace
}  // namespace tandem
