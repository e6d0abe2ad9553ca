#include "tandem/ops/conv/conv2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/parallel.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

YX pair_of(const nlohmann::json& values) {
  return {values.at(0).get<std::int64_t>(), values.at(1).get<std::int64_t>()};
}

Conv2dOptions options_of(const golden::Case& one) {
  return {.window = {.stride = pair_of(one.params.at("stride")),
                     .padding = pair_of(one.params.at("padding")),
                     .dilation = pair_of(one.params.at("dilation"))},
          .groups = one.params.at("groups")};
}

class Conv2dTest : public OpTest {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, dtype(), device(), seed, -1, 1);
  }
};

// The inputs of a case come in the order of their names: weight, x, and the bias where there is one.
TEST_P(Conv2dTest, OutputAndGradients_EqualPyTorch) {
  expect_golden(
      "conv2d", dtype(), device(), tolerance(),
      [](const golden::Case& one, const std::vector<Tensor>& in) {
        return conv2d(in[1], in[0], in.size() > 2 ? in[2] : Tensor(), options_of(one));
      },
      "conv");
}

TEST_P(Conv2dTest, Prepacked_WithResidualAndRelu_EqualsPyTorch) {
  for (const golden::Case& one : golden_cases("conv2d", "conv")) {
    SCOPED_TRACE(one.name);
    const Tensor x = golden_tensor(one, "x", dtype(), device());
    const Tensor bias =
        one.arrays.contains("zbias") ? golden_tensor(one, "zbias", dtype(), device()) : Tensor();
    const detail::PrepackedConv2d prepacked = detail::prepack_conv2d(
        golden_tensor(one, "weight", dtype(), device()), bias, options_of(one), dtype());
    std::vector<double> expected = one.array("expected").values<double>();
    expect_values(detail::prepacked_conv2d(prepacked, x), expected, tolerance());
    const Tensor residual = golden_tensor(one, "grad_out", dtype(), device());
    const std::vector<double> added = values_of(residual);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
    expect_values(detail::prepacked_conv2d(prepacked, x, residual), expected, tolerance());
    for (double& value : expected) value = std::max(value, 0.0);
    expect_values(detail::prepacked_conv2d(prepacked, x, residual, FusedActivation::relu), expected,
                  tolerance());
  }
}

TEST_P(Conv2dTest, ViewsAndEmptyBatches_AreAccepted) {
  const Tensor wide = random({2, 6, 5, 8}, 1), weight = random({4, 3, 3, 4}, 2);
  const Tensor view = wide.slice(3, 2, 6);
  const Tensor permuted = random({3, 3, 4, 4}, 3).permute({3, 0, 1, 2});
  expect_values(conv2d(view, weight, Tensor()), values_of(conv2d(view.clone(), weight, Tensor())), 0);
  expect_values(conv2d(view, permuted, Tensor()), values_of(conv2d(view, permuted.clone(), Tensor())), 0);
  Tensor none = random({0, 6, 5, 4}, 1), kernel = weight.clone(), bias = random({4}, 4);
  for (Tensor* leaf : {&none, &kernel, &bias}) leaf->set_requires_grad();
  const Tensor y = conv2d(none, kernel, bias, {.window = {.stride = {2, 2}}});
  EXPECT_EQ(y.shape(), (Shape{0, 2, 2, 4}));
  backward(y, Tensor::empty(y.shape(), y.dtype(), y.device()));
  expect_values(kernel.grad(), std::vector<double>(144, 0.0), 0);
  expect_values(bias.grad(), {0, 0, 0, 0}, 0);
  EXPECT_EQ(
      detail::prepacked_conv2d(detail::prepack_conv2d(weight, bias, {}, dtype()), none.detach()).numel(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, Conv2dTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class Conv2dDevice : public testing::TestWithParam<Device> {};

TEST_P(Conv2dDevice, Gradients_EqualCentralDifferences) {
  const auto input = [](const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, DType::f64, GetParam(), seed);
  };
  const Conv2dOptions strided{.window = {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}}};
  const Conv2dOptions grouped{.window = {.padding = {1, 1}}, .groups = 2};
  expect_gradients([&](const auto& in) { return conv2d(in[0], in[1], in[2], strided); },
                   {input({2, 5, 4, 2}, 1), input({3, 3, 2, 2}, 2), input({3}, 3)});
  expect_gradients([&](const auto& in) { return conv2d(in[0], in[1], Tensor(), grouped); },
                   {input({1, 4, 3, 4}, 1), input({2, 3, 3, 2}, 2)});
}

TEST_P(Conv2dDevice, Gradients_ExistOnlyWhereRequired) {
  const auto input = [](const Shape& shape) { return random_tensor(shape, DType::f32, GetParam(), 1); };
  Tensor x = input({1, 4, 4, 2}), weight = input({3, 3, 3, 2}), bias = input({3});
  weight.set_requires_grad();
  backward(sum(conv2d(x, weight, bias)));
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(x.grad().defined() || bias.grad().defined());
  x.set_requires_grad();
  weight.set_requires_grad(false);
  backward(sum(conv2d(x, weight, bias)));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(bias.grad().defined());
  const NoGrad no_grad;
  EXPECT_FALSE(conv2d(x, weight, bias).requires_grad());
}

TEST_P(Conv2dDevice, Bf16Images_WithF32Weights_GiveF32WeightGradients) {
  const auto input = [](const Shape& shape, DType dtype, std::uint32_t seed) {
    return random_tensor(shape, dtype, GetParam(), seed, -1, 1);
  };
  const Conv2dOptions options{.window = {.padding = {1, 1}}};
  Tensor x = input({2, 6, 6, 16}, DType::bf16, 1).set_requires_grad();
  Tensor weight = input({16, 3, 3, 16}, DType::f32, 2).set_requires_grad();
  Tensor bias = input({16}, DType::f32, 3).set_requires_grad();
  const Tensor y = conv2d(x, weight, bias, options);
  EXPECT_EQ(y.dtype(), DType::bf16);
  const Tensor dy = input(y.shape(), DType::bf16, 4);
  backward(y, dy);
  EXPECT_EQ(x.grad().dtype(), DType::bf16);
  EXPECT_EQ(weight.grad().dtype(), DType::f32);
  EXPECT_EQ(bias.grad().dtype(), DType::f32);
  Tensor wide_x = cast(x.detach(), DType::f64).set_requires_grad();
  Tensor wide_weight = cast(cast(weight.detach(), DType::bf16), DType::f64).set_requires_grad();
  const Tensor expected = conv2d(wide_x, wide_weight, cast(bias.detach(), DType::f64), options);
  backward(expected, cast(dy, DType::f64));
  expect_values(y, values_of(expected), 1e-2);
  expect_values(x.grad(), values_of(wide_x.grad()), 1e-2);
  // cuDNN rounds the sums to bf16 before they become f32.
  expect_values(weight.grad(), values_of(wide_weight.grad()), GetParam().is_cuda() ? 1e-2 : 1e-4);
  expect_values(bias.grad(), values_of(sum(cast(dy, DType::f64), {0, 1, 2})), 1e-5);
  const detail::PrepackedConv2d prepacked = detail::prepack_conv2d(weight, bias, options, DType::bf16);
  expect_values(detail::prepacked_conv2d(prepacked, x), values_of(expected), 1e-2);
}

// Compares the result and the gradients of `x` and `weight` with those in f64.
void expect_equals_f64(const Tensor& x_values, const Tensor& weight_values, const Conv2dOptions& options,
                       double tolerance) {
  Tensor x = x_values.clone().set_requires_grad(), weight = weight_values.clone().set_requires_grad();
  Tensor wide_x = cast(x_values, DType::f64).set_requires_grad();
  Tensor wide_weight = cast(weight_values, DType::f64).set_requires_grad();
  const Tensor y = conv2d(x, weight, {}, options), expected = conv2d(wide_x, wide_weight, {}, options);
  const Tensor dy = random_tensor(y.shape(), y.dtype(), y.device(), 9, -1, 1);
  backward(y, dy);
  backward(expected, cast(dy, DType::f64));
  expect_values(y, values_of(expected), tolerance);
  expect_values(x.grad(), values_of(wide_x.grad()), tolerance);
  expect_values(weight.grad(), values_of(wide_weight.grad()), tolerance);
  const detail::PrepackedConv2d prepacked =
      detail::prepack_conv2d(weight_values, {}, options, x_values.dtype());
  expect_values(detail::prepacked_conv2d(prepacked, x_values), values_of(expected), tolerance);
}

// One or two images in bf16: a kernel of its own on Hopper, which shares the sums of few pixels in a cluster.
TEST_P(Conv2dDevice, FewImagesInBf16_WithEpilogue_EqualF64) {
  struct Case {
    std::int64_t images, size, channels, filters, kernel, stride, padding, dilation;
  };
  for (const auto& [images, size, channels, filters, kernel, stride, padding, dilation] :
       {Case{1, 7, 512, 512, 3, 1, 1, 1}, Case{1, 14, 256, 512, 3, 2, 1, 1},
        Case{1, 14, 256, 512, 1, 2, 0, 1}, Case{2, 14, 128, 136, 3, 1, 1, 1}, Case{1, 28, 64, 64, 3, 1, 1, 1},
        Case{3, 9, 72, 8, 5, 2, 2, 1}, Case{1, 5, 8, 24, 3, 1, 2, 2}, Case{1, 1, 64, 64, 1, 1, 0, 1},
        Case{2, 6, 24, 200, 2, 3, 0, 1}, Case{1, 56, 64, 64, 3, 1, 1, 1}, Case{1, 14, 256, 256, 3, 1, 1, 1},
        Case{1, 56, 64, 256, 1, 1, 0, 1}, Case{1, 7, 2048, 512, 1, 1, 0, 1}, Case{2, 13, 64, 72, 3, 3, 2, 2},
        Case{1, 58, 16, 64, 4, 1, 0, 1}, Case{3, 17, 32, 40, 2, 2, 0, 1}, Case{1, 57, 640, 64, 1, 1, 0, 1},
        Case{1, 16, 256, 320, 3, 1, 1, 1}}) {
    SCOPED_TRACE(fmt::format("images {} size {} channels {} filters {}", images, size, channels, filters));
    const Conv2dOptions options{.window = {.stride = {stride, stride},
                                           .padding = {padding, padding},
                                           .dilation = {dilation, dilation}}};
    const auto input = [](const Shape& shape, DType dtype, std::uint32_t seed) {
      return random_tensor(shape, dtype, GetParam(), seed, -1, 1);
    };
    const Tensor x = input({images, size, size, channels}, DType::bf16, 1),
                 weight = input({filters, kernel, kernel, channels}, DType::bf16, 2),
                 bias = input({filters}, DType::f32, 3);
    const Tensor sums =
        conv2d(cast(x, DType::f64), cast(weight, DType::f64), cast(bias, DType::f64), options);
    const Tensor residual = input(sums.shape(), DType::bf16, 4);
    detail::PrepackedConv2d conv = detail::prepack_conv2d(weight, bias, options, DType::bf16);
    const double tolerance = 4e-3;  // half a step of 8 bits
    expect_values(detail::prepacked_conv2d(conv, x), values_of(sums), tolerance);
    const Tensor expected = relu(add(sums, cast(residual, DType::f64)));
    for (const bool settled : {false, true}) {
      conv.settled = settled;
      const Tensor y = detail::prepacked_conv2d(conv, x, residual, FusedActivation::relu);
      expect_values(y, values_of(expected), tolerance);
      EXPECT_EQ(values_of(detail::prepacked_conv2d(conv, x, residual, FusedActivation::relu)), values_of(y));
    }
  }
}

// More than small_conv.cu is used for. From 32 images on, cuDNN adds the bias in bf16, after the residual.
TEST_P(Conv2dDevice, ManyImagesInBf16_WithEpilogue_EqualF64) {
  struct Case {
    std::int64_t images, size, channels, filters, kernel, stride;
  };
  for (const auto& [images, size, channels, filters, kernel, stride] :
       {Case{31, 28, 32, 40, 3, 1}, Case{32, 28, 32, 40, 3, 1}, Case{64, 14, 64, 64, 3, 1},
        Case{140, 28, 64, 128, 1, 2}, Case{48, 33, 3, 16, 7, 2}, Case{64, 5, 20, 12, 3, 2}}) {
    SCOPED_TRACE(fmt::format("images {} channels {} filters {}", images, channels, filters));
    const Conv2dOptions options{.window = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}}};
    const auto input = [](const Shape& shape, DType dtype, std::uint32_t seed) {
      return random_tensor(shape, dtype, GetParam(), seed, -1, 1);
    };
    const Tensor x = input({images, size, size, channels}, DType::bf16, 1),
                 weight = input({filters, kernel, kernel, channels}, DType::bf16, 2),
                 bias = multiply(input({filters}, DType::f32, 3), 8);
    const Tensor sums =
        conv2d(cast(x, DType::f64), cast(weight, DType::f64), cast(bias, DType::f64), options);
    const Tensor residual = input(sums.shape(), DType::bf16, 4),
                 added = add(sums, cast(residual, DType::f64));
    const detail::PrepackedConv2d conv = detail::prepack_conv2d(weight, bias, options, DType::bf16);
    const double tolerance = 4e-3;  // the result and the bias are rounded to 8 bits each
    expect_values(detail::prepacked_conv2d(conv, x), values_of(sums), tolerance);
    expect_values(detail::prepacked_conv2d(conv, x, {}, FusedActivation::relu), values_of(relu(sums)),
                  tolerance);
    expect_values(detail::prepacked_conv2d(conv, x, residual), values_of(added), tolerance);
    const Tensor y = detail::prepacked_conv2d(conv, x, residual, FusedActivation::relu);
    expect_values(y, values_of(relu(added)), tolerance);
    EXPECT_EQ(values_of(detail::prepacked_conv2d(conv, x, residual, FusedActivation::relu)), values_of(y));
  }
}

// The first layer of photo networks: too few channels for tensor cores, so space-to-depth is used.
TEST_P(Conv2dDevice, FewChannels_InEveryPrecision_EqualF64) {
  struct Case {
    std::int64_t kernel, padding, stride, height, width, channels;
  };
  for (const auto& [kernel, padding, stride, height, width, channels] :
       {Case{7, 3, 2, 20, 23, 3}, Case{3, 1, 2, 9, 8, 3}, Case{3, 0, 2, 8, 9, 1}, Case{4, 2, 2, 10, 11, 2},
        Case{5, 2, 1, 9, 7, 3}, Case{1, 0, 2, 5, 6, 3}}) {
    const Conv2dOptions options{.window = {.stride = {stride, stride}, .padding = {padding, padding}}};
    const auto input = [](const Shape& shape, DType dtype, std::uint32_t seed) {
      return random_tensor(shape, dtype, GetParam(), seed, -1, 1);
    };
    for (const MatmulPrecision precision :
         {MatmulPrecision::fp32, MatmulPrecision::tf32, MatmulPrecision::bf16}) {
      const MatmulPrecisionScope scope(precision);
      const DType dtype = precision == MatmulPrecision::bf16 ? DType::bf16 : DType::f32;
      SCOPED_TRACE(fmt::format("kernel {} padding {} stride {} precision {}", kernel, padding, stride,
                               static_cast<int>(precision)));
      expect_equals_f64(input({2, height, width, channels}, dtype, 1),
                        input({16, kernel, kernel, channels}, dtype, 2), options,
                        precision == MatmulPrecision::fp32 ? 1e-5 : 1e-2);
    }
  }
}

// The Winograd path on both devices.
TEST_P(Conv2dDevice, Kernel3x3OfManyChannels_EqualsF64) {
  for (const std::int64_t size : {4, 7, 14, 19})
    for (const std::int64_t padding : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("size {} padding {}", size, padding));
      expect_equals_f64(random_tensor({3, size, size + 3, 24}, DType::f32, GetParam(), 1, -1, 1),
                        random_tensor({20, 3, 3, 24}, DType::f32, GetParam(), 2, -1, 1),
                        {.window = {.padding = {padding, padding}}}, 2e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conv2dDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Conv2d, InvalidArguments_ThrowErrorThatNamesThem) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  const Tensor x = of({1, 4, 4, 6}), weight = of({2, 3, 3, 6});
  const auto error = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Conv2dOptions& options) {
    return error_text([&] { conv2d(a, b, c, options); });
  };
  EXPECT_EQ(
      error(of({4, 4, 6}), weight, {}, {}),
      "[conv2d] expected x (n, height, width, channels) and weight (out, kernel y, kernel x, channels / "
      "groups), got [4, 4, 6] and [2, 3, 3, 6]");
  EXPECT_EQ(
      error(x, of({2, 3, 3, 5}), {}, {}),
      "[conv2d] expected a weight of 6 channels for x [1, 4, 4, 6] in 1 groups, got weight [2, 3, 3, 5]");
  EXPECT_EQ(
      error(x, weight, {}, {.groups = 4}),
      "[conv2d] expected groups that divide the channels and the filters, got 4 groups of 6 channels and "
      "2 filters");
  EXPECT_EQ(error(x, of({2, 5, 3, 6}), {}, {}), "[conv2d] expected images of at least 5x3, got 4x4");
  EXPECT_EQ(
      error(x, weight, {}, {.window = {.stride = {0, 1}}}),
      "[conv2d] expected a kernel, a stride and a dilation of at least 1 and a padding of at least 0, got "
      "kernel 3x3, stride 0x1, dilation 1x1, padding 0x0");
  EXPECT_EQ(error(x, weight, of({3}), {}), "[conv2d] expected bias (2), got [3]");
  EXPECT_EQ(error(x, of({2, 3, 3, 6}, DType::f64), {}, {}), "[conv2d] expected a weight of f32, got f64");
  EXPECT_EQ(error(of({1, 4, 4, 6}, DType::i32), weight, {}, {}),
            "[conv2d] expected a floating dtype, got i32");
  EXPECT_EQ(error(x, weight, {}, {.window = {.padding = {std::int64_t{1} << 62, 0}}}),
            "[conv2d] expected sizes of at most 1073741824, got 4611686018427387904x0");
  EXPECT_EQ(error(of({1, 0, 4, 6}), weight, {}, {}), "[conv2d] expected images of at least 1x1, got 0x4");
  EXPECT_EQ(error(x, Tensor(), {}, {}), "[conv2d] expected a tensor, got an undefined one");
  EXPECT_EQ(
      error_text([&] {
        detail::prepacked_conv2d(detail::prepack_conv2d(weight, {}, {}, DType::f32), x, of({1, 2, 2, 3}));
      }),
      "[conv2d] expected a residual of shape [1, 2, 2, 2], got [1, 2, 2, 3]");
  EXPECT_EQ(error_text([&] { detail::prepack_conv2d(weight, of({5}), {}, DType::f32); }),
            "[conv2d] expected bias (2), got [5]");
}

}  // namespace
}  // namespace tandem
