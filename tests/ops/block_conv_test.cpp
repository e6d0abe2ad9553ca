// Every instruction set of this CPU against convolution in f64: bf16 within the rounding of the result, 8-bit
// integers exactly.
#include "tandem/ops/conv/block_conv.h"

#include <fmt/format.h>

#include "tandem/core/parallel.h"
#include "tandem/ops/cast.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

struct Layer {
  std::int64_t images, height, width, channels, filters, kernel, stride = 1, padding = 0, dilation = 1;
};

// Around steps of 32 and 64 channels, panels of 16 filters, blocks of 32 pixels; several bands.
const Layer layers[] = {{1, 1, 1, 1, 1, 1},
                        {2, 8, 8, 64, 64, 1},
                        {1, 7, 9, 64, 33, 1},
                        {1, 56, 9, 64, 64, 3, 1, 1},
                        {3, 7, 7, 128, 48, 3, 1, 1},
                        {2, 14, 14, 64, 16, 3, 2, 1},
                        {2, 9, 6, 32, 40, 3, 1, 0},
                        {1, 33, 31, 3, 64, 7, 2, 3},
                        {1, 12, 12, 5, 7, 5, 1, 2},
                        {2, 13, 11, 64, 17, 1, 2},
                        {1, 10, 10, 64, 20, 3, 1, 2, 2},
                        {1, 11, 7, 24, 18, 3, 3, 1},
                        {1, 5, 70, 256, 16, 3, 1, 1},
                        {1, 130, 129, 3, 8, 1, 1, 0},
                        {2, 6, 5, 32, 16, 2, 1, 3},
                        {1, 120, 40, 64, 16, 3, 2, 1},
                        {2, 30, 21, 5, 18, 1},
                        {2, 5, 4, 192, 32, 3, 1, 2},
                        {1, 19, 20, 6, 9, 3, 2, 3, 2},
                        {1, 3, 50, 64, 32, 5, 1, 2},
                        {4, 2, 1, 64, 32, 3, 1, 1},
                        {2, 9, 10, 12, 40, 3, 1, 1},
                        {1, 12, 11, 24, 20, 3, 1, 2, 2}};

Conv2dOptions options_of(const Layer& layer) {
  return {.window = {.stride = layer.stride, .padding = layer.padding, .dilation = layer.dilation}};
}

Tensor packed_weight(const Conv2dPlan& plan, MatrixType type, const Tensor& weight) {
  Tensor packed = Tensor::empty({block_conv_weight_bytes(plan, type)}, DType::u8);
  pack_block_conv_weight(plan, type, packed.bytes(), weight.bytes());
  return packed;
}

std::vector<double> relu_values(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

struct Bf16Inputs {
  Tensor x, weight, bias, residual, sums;  // sums: without bias and residual, in f64
};

Bf16Inputs bf16_inputs(const Layer& layer) {
  const std::int64_t inner = layer.kernel * layer.kernel * layer.channels;
  const double scale = 1.5 / std::sqrt(static_cast<double>(inner));
  const Tensor x =
      random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::bf16, cpu_device, 1);
  const Tensor weight = random_tensor({layer.filters, layer.kernel, layer.kernel, layer.channels},
                                      DType::bf16, cpu_device, 2, -scale, scale);
  const Tensor sums = conv2d(cast(x, DType::f64), cast(weight, DType::f64), Tensor(), options_of(layer));
  return {x, weight, random_tensor({layer.filters}, DType::f32, cpu_device, 3),
          random_tensor(sums.shape(), DType::bf16, cpu_device, 4), sums};
}

Tensor run_bf16(const Layer& layer, const Bf16Inputs& inputs, MatrixIsa isa, BlockEpilogue epilogue) {
  const Conv2dPlan plan = conv2d_plan(inputs.x, inputs.weight.shape(), options_of(layer));
  const Tensor packed = packed_weight(plan, MatrixType::bf16, inputs.weight);
  Tensor y = Tensor::empty(inputs.sums.shape(), epilogue.dtype);
  block_conv2d({.plan = plan,
                .isa = isa,
                .x = inputs.x.bytes(),
                .packed = packed.bytes(),
                .y = y.bytes(),
                .epilogue = epilogue});
  return y;
}

class BlockConvLayers : public testing::TestWithParam<Layer> {};

TEST_P(BlockConvLayers, Bf16_EveryIsa_AgreesWithF64) {
  const Layer& layer = GetParam();
  const Bf16Inputs inputs = bf16_inputs(layer);
  std::vector<double> expected = values_of(inputs.sums);
  const std::vector<double> bias = values_of(inputs.bias), residual = values_of(inputs.residual);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()] + residual[i];
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
    SCOPED_TRACE(name_of(isa));
    expect_values(run_bf16(layer, inputs, isa, {.dtype = DType::f32}), values_of(inputs.sums), 1e-5);
    const BlockEpilogue epilogue{.bias = inputs.bias.data<float>(),
                                 .residual = inputs.residual.bytes(),
                                 .activation = FusedActivation::relu};
    // Half a unit in the last place of bf16 is 2⁻⁸ of the value.
    expect_values(run_bf16(layer, inputs, isa, epilogue), relu_values(expected), 1.0 / 256);
  }
}

TEST_P(BlockConvLayers, Bf16Gradients_EveryIsa_AgreeWithF64) {
  const Layer& layer = GetParam();
  const Bf16Inputs inputs = bf16_inputs(layer);
  const Conv2dPlan plan = conv2d_plan(inputs.x, inputs.weight.shape(), options_of(layer));
  if (!has_block_gradients(plan)) return;
  Tensor x = cast(inputs.x, DType::f64).set_requires_grad(),
         weight = cast(inputs.weight, DType::f64).set_requires_grad();
  backward(conv2d(x, weight, Tensor(), options_of(layer)), cast(inputs.residual, DType::f64));
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
    SCOPED_TRACE(name_of(isa));
    Tensor dx = Tensor::empty(x.shape(), DType::bf16), dweight = Tensor::empty(weight.shape(), DType::f32);
    block_input_gradient(plan, isa, dx.bytes(), inputs.residual.bytes(), inputs.weight.bytes());
    expect_values(dx, values_of(x.grad()), 1.0 / 256);
    block_weight_gradient(plan, isa, dweight.data<float>(), inputs.residual.bytes(), inputs.x.bytes());
    expect_values(dweight, values_of(weight.grad()), 1e-5);
  }
}

struct Int8Inputs {
  Tensor x, weight, scale, bias, residual;
  std::vector<double> expected;  // before rounding
};

constexpr std::uint8_t zero = 37;
constexpr Quantization result_values{.scale = 0.05f, .zero = 90}, residual_values{.scale = 0.02f, .zero = 11};

Int8Inputs int8_inputs(const Layer& layer) {
  const std::int64_t inner = layer.kernel * layer.kernel * layer.channels;
  const Tensor x = random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::u8,
                                 cpu_device, 1, 0, 256);
  const Tensor numbers = random_tensor({layer.filters, layer.kernel, layer.kernel, layer.channels},
                                       DType::i32, cpu_device, 2, -127, 128);
  std::vector<std::uint8_t> weight;
  for (const std::int32_t number : numbers.to_vector<std::int32_t>())
    weight.push_back(static_cast<std::uint8_t>(static_cast<std::int8_t>(number)));
  const Tensor sums = conv2d(add(cast(x, DType::f64), -static_cast<double>(zero)), cast(numbers, DType::f64),
                             Tensor(), options_of(layer));
  const double typical = 4.0 / (7000.0 * std::sqrt(static_cast<double>(inner)));
  const Tensor scale = random_tensor({layer.filters}, DType::f32, cpu_device, 3, typical, 2 * typical);
  Tensor bias = random_tensor({layer.filters}, DType::f32, cpu_device, 4);
  const Tensor residual = random_tensor(sums.shape(), DType::u8, cpu_device, 5, 0, 256);
  std::vector<double> expected = values_of(sums);
  const std::vector<double> scales = values_of(scale), biases = values_of(bias),
                            residuals = values_of(residual), numbers_of = values_of(numbers);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = expected[i] * scales[i % scales.size()] + biases[i % biases.size()] +
                  residual_values.scale * (residuals[i] - residual_values.zero);
  for (std::size_t f = 0; f < biases.size(); ++f) {  // u8 images are not shifted by their zero
    double sum = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(inner); ++k)
      sum += numbers_of[f * static_cast<std::size_t>(inner) + k];
    bias.data<float>()[f] = static_cast<float>(biases[f] - scales[f] * zero * sum);
  }
  return {x, Tensor::from(weight, numbers.shape()), scale, bias, residual, expected};
}

TEST_P(BlockConvLayers, Int8_EveryIsa_AgreesWithF64) {
  const Layer& layer = GetParam();
  const Int8Inputs inputs = int8_inputs(layer);
  Conv2dPlan plan =
      conv2d_plan(Tensor::empty(inputs.x.shape(), DType::f32), inputs.weight.shape(), options_of(layer));
  const Tensor packed = packed_weight(plan, MatrixType::int8, inputs.weight);
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::int8)) {
    SCOPED_TRACE(name_of(isa));
    Tensor y = Tensor::empty(inputs.residual.shape(), DType::u8);
    block_conv2d({.plan = plan,
                  .isa = isa,
                  .x = inputs.x.bytes(),
                  .packed = packed.bytes(),
                  .y = y.bytes(),
                  .epilogue = {.type = MatrixType::int8,
                               .dtype = DType::u8,
                               .scale = inputs.scale.data<float>(),
                               .bias = inputs.bias.data<float>(),
                               .residual = inputs.residual.bytes(),
                               .result = result_values,
                               .residual_values = residual_values},
                  .padding_value = zero});
    const std::vector<double> stored = values_of(y);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const double exact =
          std::clamp(inputs.expected[i] / result_values.scale + result_values.zero, 0.0, 255.0);
      ASSERT_NEAR(stored[i], exact, 0.5 + 2e-3) << "element " << i;
    }
  }
}

std::string layer_name(const testing::TestParamInfo<Layer>& info) {
  const Layer& layer = info.param;
  return fmt::format("n{}_{}x{}x{}_f{}_k{}_s{}_p{}_d{}", layer.images, layer.height, layer.width,
                     layer.channels, layer.filters, layer.kernel, layer.stride, layer.padding,
                     layer.dilation);
}
INSTANTIATE_TEST_SUITE_P(Layers, BlockConvLayers, testing::ValuesIn(layers), layer_name);

TEST(BlockConv, Activations_AreApplied) {
  const Layer layer{1, 6, 7, 64, 40, 3, 1, 1};
  const Bf16Inputs inputs = bf16_inputs(layer);
  const std::vector<double> sums = values_of(inputs.sums);
  std::vector<double> silu, hardswish;
  for (const double value : sums) {
    silu.push_back(value / (1 + std::exp(-value)));
    hardswish.push_back(value * std::clamp(value + 3, 0.0, 6.0) / 6);
  }
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
    expect_values(run_bf16(layer, inputs, isa, {.dtype = DType::f32, .activation = FusedActivation::silu}),
                  silu, 1e-5);
    expect_values(run_bf16(layer, inputs, isa, {.activation = FusedActivation::hardswish}), hardswish,
                  1.0 / 256);
  }
}

class BlockConvThreads : public testing::TestWithParam<Layer> {};

TEST_P(BlockConvThreads, Bits_DoNotDependOnThem) {
  const Layer& layer = GetParam();
  const Bf16Inputs inputs = bf16_inputs(layer);
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
    const std::vector<double> whole = values_of(run_bf16(layer, inputs, isa, {.dtype = DType::f32}));
    const Conv2dPlan plan = conv2d_plan(inputs.x, inputs.weight.shape(), options_of(layer));
    const auto gradient = [&] {
      Tensor dweight = Tensor::empty(inputs.weight.shape(), DType::f32);
      block_weight_gradient(plan, isa, dweight.data<float>(), inputs.residual.bytes(), inputs.x.bytes());
      return values_of(dweight);
    };
    const std::vector<double> whole_gradient = gradient();
    for (const int threads : {1, 2, 7}) {
      set_thread_count(threads);
      EXPECT_EQ(gradient(), whole_gradient) << threads;
      EXPECT_EQ(values_of(run_bf16(layer, inputs, isa, {.dtype = DType::f32})), whole) << threads;
    }
    set_thread_count(usable_cpus());
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, BlockConvThreads,
                         testing::Values(Layer{3, 15, 13, 64, 160, 3, 1, 1}, Layer{2, 40, 41, 3, 64, 7, 2, 3},
                                         Layer{5, 7, 7, 32, 33, 1}),
                         layer_name);

// Windows of these layers read behind their segments.
TEST(BlockConv, NaNOfEarlierCalls_IsNotRead) {
  for (const Layer& layer :
       {Layer{1, 9, 9, 5, 7, 3, 1, 1}, Layer{1, 9, 9, 5, 7, 3, 2, 1}, Layer{1, 9, 9, 5, 7, 1}}) {
    Layer larger = layer;
    larger.height = larger.width = 12;
    Bf16Inputs nans = bf16_inputs(larger);
    for (std::int64_t i = 0; i < nans.x.numel(); ++i)
      nans.x.data<BFloat16>()[i] = BFloat16(std::numeric_limits<float>::quiet_NaN());
    const Bf16Inputs inputs = bf16_inputs(layer);
    for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
      run_bf16(larger, nans, isa, {.dtype = DType::f32});
      expect_values(run_bf16(layer, inputs, isa, {.dtype = DType::f32}), values_of(inputs.sums), 1e-5);
    }
  }
}

// Tiles hold 16 rows and blocks 32: what lies behind the last row must not be read into the result.
TEST(BlockConv, NaNInOtherPixels_StaysThere) {
  const Layer layer{1, 4, 5, 64, 32, 3, 1, 1};
  Bf16Inputs inputs = bf16_inputs(layer);
  inputs.x.data<BFloat16>()[0] = BFloat16(std::numeric_limits<float>::quiet_NaN());
  for (const MatrixIsa isa : available_matrix_isas(MatrixType::bf16)) {
    const std::vector<double> y =
        values_of(run_bf16(layer, inputs, isa, {.activation = FusedActivation::relu}));
    for (std::int64_t pixel = 0; pixel < 20; ++pixel) {
      const bool is_neighbor = pixel / 5 <= 1 && pixel % 5 <= 1;
      EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(pixel * 32)]), is_neighbor) << pixel;
    }
  }
}

}  // namespace
}  // namespace tandem::detail
