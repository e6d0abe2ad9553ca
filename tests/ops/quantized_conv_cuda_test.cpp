// 8-bit convolutions on a GPU: exactly the integers of a plain loop with the same roundings.
#include <cmath>

#include "tandem/ops/conv/quantized_conv.h"
#include "tandem/ops/conv/quantized_images.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

struct Layer {
  std::int64_t images, height, width, channels, filters, kernel, stride;
};
// Whole groups of 64 channels and filters are for tensor cores, others for plain kernels.
const Layer layers[] = {
    {1, 1, 1, 64, 64, 1, 1},     {1, 7, 9, 64, 64, 1, 1},      {5, 9, 7, 64, 256, 1, 1},
    {67, 5, 3, 64, 128, 1, 1},   {3, 8, 8, 256, 64, 1, 1},     {2, 13, 11, 512, 128, 1, 1},
    {5, 7, 7, 512, 256, 1, 1},   {4, 7, 7, 2048, 128, 1, 1},   {2, 15, 13, 128, 256, 1, 2},
    {67, 6, 5, 64, 192, 1, 2},   {1, 8, 8, 64, 64, 3, 1},      {3, 17, 9, 64, 64, 3, 1},
    {5, 14, 14, 64, 128, 3, 2},  {67, 7, 5, 128, 128, 3, 1},   {2, 13, 15, 128, 64, 3, 2},
    {9, 7, 7, 256, 256, 3, 1},   {1, 3, 70, 64, 128, 3, 1},    {150, 14, 14, 64, 64, 1, 1},
    {90, 28, 14, 64, 128, 1, 1}, {40, 14, 28, 128, 128, 3, 1}, {31, 15, 23, 64, 64, 3, 1},
    {360, 16, 24, 64, 64, 3, 1}, {50, 14, 14, 256, 512, 1, 1}, {90, 9, 11, 64, 256, 1, 2},
    {2, 6, 5, 5, 7, 3, 2},       {1, 9, 9, 96, 17, 3, 1},      {0, 8, 8, 64, 64, 3, 1}};

constexpr Quantization input{.scale = 0.03f, .zero = 0};

class QuantizedConvCuda : public testing::TestWithParam<Layer> {};

struct Case {
  FusedActivation activation;
  bool has_residual;
  Quantization result, residual_values;
};

// Padding is `zero`.
std::vector<std::int32_t> sums_of(const Layer& layer, const Tensor& x, const Tensor& weight, const Shape& y,
                                  int zero) {
  const std::int64_t channels = layer.channels, kernel = layer.kernel, padding = kernel / 2;
  std::vector<int> numbers;
  for (const std::uint8_t stored : weight.to_vector<std::uint8_t>())
    numbers.push_back(stored - stored_weight_zero);
  std::vector<std::int32_t> sums;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t v = 0; v < y[1]; ++v)
      for (std::int64_t u = 0; u < y[2]; ++u)
        for (std::int64_t f = 0; f < y[3]; ++f) {
          std::int32_t sum = 0;
          for (std::int64_t ky = 0; ky < kernel; ++ky)
            for (std::int64_t kx = 0; kx < kernel; ++kx) {
              const std::int64_t row = v * layer.stride - padding + ky,
                                 column = u * layer.stride - padding + kx;
              const bool is_inside = row >= 0 && row < layer.height && column >= 0 && column < layer.width;
              const std::int64_t pixel = ((n * layer.height + row) * layer.width + column) * channels;
              const int* const factors = numbers.data() + ((f * kernel + ky) * kernel + kx) * channels;
              for (std::int64_t c = 0; c < channels; ++c)
                sum += (is_inside ? x.data<std::uint8_t>()[pixel + c] : zero) * factors[c];
            }
          sums.push_back(sum);
        }
  return sums;
}

// `scale` and `bias` are those of the filters, of the weight and the result.
std::vector<std::uint8_t> expected_bytes(const std::vector<std::int32_t>& sums,
                                         const std::vector<float>& scale, const std::vector<float>& bias,
                                         const std::vector<std::uint8_t>& residual, const Case& one) {
  const float inverse = 1 / one.result.scale, residual_scale = one.residual_values.scale * inverse;
  std::vector<std::uint8_t> expected;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t f = i % scale.size();
    float shift = std::fma(bias[f], inverse, one.result.zero);
    if (one.has_residual) shift -= one.residual_values.zero * residual_scale;
    float value = std::fma(static_cast<float>(sums[i]), input.scale * scale[f] * inverse, shift);
    if (one.has_residual) value = std::fma(static_cast<float>(residual[i]), residual_scale, value);
    if (one.activation == FusedActivation::relu) value = std::max(value, one.result.zero);
    expected.push_back(static_cast<std::uint8_t>(std::nearbyint(std::clamp(value, 0.0f, 255.0f))));
  }
  return expected;
}

TEST_P(QuantizedConvCuda, Int8_EqualsPlainLoop) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Layer& layer = GetParam();
  const Conv2dOptions options{.window = {.stride = layer.stride, .padding = layer.kernel / 2}};
  const Tensor x = random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::u8,
                                 cpu_device, 1, 0, 256);
  const double spread = 1 / std::sqrt(static_cast<double>(layer.kernel * layer.kernel * layer.channels));
  const QuantizedWeight weight =
      quantize_weight(random_tensor({layer.filters, layer.kernel, layer.kernel, layer.channels}, DType::f32,
                                    cpu_device, 2, -spread, spread));
  const Tensor bias = random_tensor({layer.filters}, DType::f32, cpu_device, 3);
  const Shape shape{layer.images, (layer.height - 1) / layer.stride + 1, (layer.width - 1) / layer.stride + 1,
                    layer.filters};
  const Tensor residual = random_tensor(shape, DType::u8, cpu_device, 4, 0, 256);
  const std::vector<std::int32_t> sums = sums_of(layer, x, weight.stored, shape, 0);
  const Device device = cuda_device();
  for (const Case& one : {Case{FusedActivation::relu, false, {.scale = 0.02f, .zero = 0}, {}},
                          Case{FusedActivation::none, false, {.scale = 0.05f, .zero = 128}, {}},
                          Case{FusedActivation::relu, true, {.scale = 0.03f, .zero = 0}, {0.015f, 128}},
                          Case{FusedActivation::relu, true, {.scale = 0.03f, .zero = 0}, {0.02f, 0}},
                          Case{FusedActivation::relu, false, {.scale = 0.03f, .zero = 40}, {}}}) {
    SCOPED_TRACE(fmt::format("residual {}, zero {} and {}", one.has_residual, one.result.zero,
                             one.residual_values.zero));
    const QuantizedConv2d conv = prepack_quantized_conv2d({weight.stored.to(device), weight.scale.to(device)},
                                                          bias.to(device), options, input, one.result);
    QuantizedResidual added;
    if (one.has_residual) added = {residual.to(device), one.residual_values};
    const Tensor y = quantized_conv2d(conv, x.to(device), one.activation, added);
    ASSERT_EQ(y.shape(), shape);
    const std::vector<std::uint8_t> actual = y.to_vector<std::uint8_t>(),
                                    expected = expected_bytes(sums, weight.scale.to_vector<float>(),
                                                              bias.to_vector<float>(),
                                                              residual.to_vector<std::uint8_t>(), one);
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = expected.size(); i-- > 0;)
      if (actual[i] != expected[i]) {
        ++wrong;
        first = i;
      }
    ASSERT_EQ(wrong, 0u) << "of " << expected.size() << ", the first at pixel " << first / layer.filters
                         << ", filter " << first % layer.filters << ": " << int{actual[first]} << " and not "
                         << int{expected[first]};
  }
}

std::string layer_name(const testing::TestParamInfo<Layer>& info) {
  const Layer& layer = info.param;
  return fmt::format("cuda_n{}_{}x{}x{}_f{}_k{}_s{}", layer.images, layer.height, layer.width, layer.channels,
                     layer.filters, layer.kernel, layer.stride);
}
INSTANTIATE_TEST_SUITE_P(Layers, QuantizedConvCuda, testing::ValuesIn(layers), layer_name);

struct StemCase {
  std::int64_t images, height, width, channels;
  DType dtype;
};

TEST(QuantizedStemCuda, Values_EqualThoseOfTheSteps) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Conv2dOptions options{.window = {.stride = 2, .padding = 3}};
  const Window window{.stride = 2, .padding = 1};
  for (const StemCase& one : {StemCase{1, 32, 32, 3, DType::bf16}, StemCase{2, 48, 33, 3, DType::f32},
                              StemCase{1, 1, 1, 1, DType::bf16}, StemCase{3, 61, 70, 1, DType::f32},
                              StemCase{1, 224, 224, 3, DType::bf16}, StemCase{2, 19, 400, 4, DType::bf16},
                              StemCase{300, 20, 24, 3, DType::bf16}, StemCase{2, 12, 10, 5, DType::f32}})
    for (const float zero : {0.0f, 119.0f, 255.0f}) {
      SCOPED_TRACE(
          fmt::format("{}x{}x{}x{}, zero {}", one.images, one.height, one.width, one.channels, zero));
      const Layer layer{one.images, one.height, one.width, one.channels, 64, 7, 2};
      const Quantization images{.scale = input.scale, .zero = zero};
      const double spread = 1 / std::sqrt(49.0 * static_cast<double>(one.channels));
      const Tensor x =
          random_tensor({one.images, one.height, one.width, one.channels}, one.dtype, cpu_device, 1, -2, 2);
      const QuantizedWeight weight = quantize_weight(
          random_tensor({64, 7, 7, one.channels}, DType::f32, cpu_device, 2, -spread, spread));
      const Tensor bias = random_tensor({64}, DType::f32, cpu_device, 3), there = x.to(cuda_device());
      const QuantizedConv2d conv =
          prepack_quantized_conv2d({weight.stored.to(cuda_device()), weight.scale.to(cuda_device())},
                                   bias.to(cuda_device()), options, images, {.scale = 0.02f, .zero = 0});
      const Tensor stored = quantize_images(x, images, one.channels);
      EXPECT_EQ(quantize_images(there, images, one.channels).to_vector<std::uint8_t>(),
                stored.to_vector<std::uint8_t>());
      const Shape size{one.images, (one.height - 1) / 2 + 1, (one.width - 1) / 2 + 1, 64};
      const Case relu{FusedActivation::relu, false, conv.result, {}};
      const std::vector<std::uint8_t> bytes =
          expected_bytes(sums_of(layer, stored, weight.stored, size, static_cast<int>(zero)),
                         weight.scale.to_vector<float>(), conv.bias.to_vector<float>(), {}, relu);
      const Tensor expected = quantized_max_pool2d(Tensor::from(bytes, size), {3, 3}, window);
      const Tensor y = quantized_stem(conv, there, {3, 3}, window);
      ASSERT_EQ(y.shape(), expected.shape());
      ASSERT_EQ(y.to_vector<std::uint8_t>(), expected.to_vector<std::uint8_t>());
      EXPECT_EQ(
          quantized_conv2d(conv, stored.to(cuda_device()), FusedActivation::relu).to_vector<std::uint8_t>(),
          bytes);
    }
}

TEST(QuantizedPoolCuda, MaxAndMean_EqualThoseOfTheCpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const Shape& shape :
       {Shape{2, 9, 8, 64}, Shape{3, 7, 7, 33}, Shape{1, 5, 3, 5}, Shape{5, 7, 7, 512}}) {
    const Tensor x = random_tensor(shape, DType::u8, cpu_device, 1, 0, 256), there = x.to(cuda_device());
    const Window window{.stride = 2, .padding = 1};
    EXPECT_EQ(values_of(quantized_max_pool2d(there, {3, 3}, window)),
              values_of(quantized_max_pool2d(x, {3, 3}, window)));
    constexpr Quantization values{.scale = 0.03f, .zero = 31};
    expect_values(quantized_image_mean(there, values), values_of(quantized_image_mean(x, values)), 1e-6);
  }
}

}  // namespace
}  // namespace tandem::detail
