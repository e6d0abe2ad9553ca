// 8-bit convolution, pooling and mean against the same in f64 of the values that the integers stand for.
#include "tandem/ops/conv/quantized_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/conv/quantized_images.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

template <class F>
void expect_error(const F& f, const std::string& part) {
  const std::string text = error_text(f);
  EXPECT_NE(text.find(part), text.npos) << text;
}

struct Layer {
  std::int64_t images, height, width, channels, filters, kernel, stride, padding;
};
const Layer layers[] = {{1, 1, 1, 1, 1, 1, 1, 0},      {2, 9, 7, 64, 64, 3, 1, 1},
                        {1, 14, 14, 64, 128, 3, 2, 1}, {2, 8, 8, 64, 40, 1, 2, 0},
                        {1, 7, 7, 96, 17, 1, 1, 0},    {1, 20, 18, 5, 33, 7, 2, 3},
                        {3, 5, 5, 128, 48, 3, 1, 1},   {0, 8, 8, 32, 16, 3, 1, 1}};

Conv2dOptions options_of(const Layer& layer) {
  return {.window = {.stride = layer.stride, .padding = layer.padding}};
}

double value_of(double stored, Quantization values) {
  return static_cast<double>(values.scale) * (stored - static_cast<double>(values.zero));
}

Tensor values_of_stored(const Tensor& stored, Quantization values) {
  std::vector<double> all = values_of(stored);
  for (double& value : all) value = value_of(value, values);
  return Tensor::from(all, stored.shape());
}

constexpr Quantization input{.scale = 0.03f, .zero = 31}, result{.scale = 0.02f, .zero = 70},
    residual_values{.scale = 0.015f, .zero = 128};

// What is stored for exact values, and how far from it rounding may be.
void expect_stored(const Tensor& stored, const std::vector<double>& exact) {
  const std::vector<double> actual = values_of(stored);
  ASSERT_EQ(actual.size(), exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double wanted = std::clamp(
        exact[i] / static_cast<double>(result.scale) + static_cast<double>(result.zero), 0.0, 255.0);
    ASSERT_NEAR(actual[i], wanted, 0.5 + 2e-3) << "element " << i;
  }
}

class QuantizedConvLayers : public testing::TestWithParam<Layer> {};

TEST_P(QuantizedConvLayers, Int8_AgreesWithF64) {
  const Layer& layer = GetParam();
  const double spread = 1 / std::sqrt(static_cast<double>(layer.kernel * layer.kernel * layer.channels));
  const Tensor x = random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::u8,
                                 cpu_device, 1, 0, 256);
  const QuantizedWeight weight =
      quantize_weight(random_tensor({layer.filters, layer.kernel, layer.kernel, layer.channels}, DType::f32,
                                    cpu_device, 2, -spread, spread));
  const Tensor bias = random_tensor({layer.filters}, DType::f32, cpu_device, 3);
  const Tensor sums =
      conv2d(values_of_stored(x, input), cast(dequantize_weight(weight.stored, weight.scale), DType::f64),
             cast(bias, DType::f64), options_of(layer));
  const Tensor residual = random_tensor(sums.shape(), DType::u8, cpu_device, 4, 0, 256);
  const QuantizedConv2d conv = prepack_quantized_conv2d(weight, bias, options_of(layer), input, result);
  expect_stored(quantized_conv2d(conv, x, FusedActivation::none), values_of(sums));
  std::vector<double> exact = values_of(sums);
  const std::vector<double> added = values_of(residual);
  for (std::size_t i = 0; i < exact.size(); ++i)
    exact[i] = std::max(exact[i] + value_of(added[i], residual_values), 0.0);
  expect_stored(quantized_conv2d(conv, x, FusedActivation::relu, {residual, residual_values}), exact);
}

TEST(QuantizedConv, ResultsOfMoreThan32Bits_AreClamped) {
  const Tensor x = random_tensor({1, 6, 6, 64}, DType::u8, cpu_device, 1, 0, 256);
  const QuantizedWeight weight =
      quantize_weight(random_tensor({64, 3, 3, 64}, DType::f32, cpu_device, 2, -0.1, 0.1));
  const Tensor bias = random_tensor({64}, DType::f32, cpu_device, 3);
  const auto convolved = [&](float scale) {
    const QuantizedConv2d conv = prepack_quantized_conv2d(weight, bias, {}, input, {scale, 0});
    return values_of(quantized_conv2d(conv, x, FusedActivation::none));
  };
  const std::vector<double> coarse = convolved(1e-2f), fine = convolved(1e-12f);
  for (std::size_t i = 0; i < coarse.size(); ++i) {
    if (coarse[i] > 0)
      ASSERT_EQ(fine[i], 255) << i;
    else
      ASSERT_TRUE(fine[i] == 0 || fine[i] == 255) << i;  // what rounds to 0 may be a little more
  }
  EXPECT_GT(std::ranges::count(fine, 0), 300);
  EXPECT_GT(std::ranges::count(fine, 255), 300);
}

std::string layer_name(const testing::TestParamInfo<Layer>& info) {
  const Layer& layer = info.param;
  return fmt::format("n{}_{}x{}x{}_f{}_k{}_s{}", layer.images, layer.height, layer.width, layer.channels,
                     layer.filters, layer.kernel, layer.stride);
}
INSTANTIATE_TEST_SUITE_P(Layers, QuantizedConvLayers, testing::ValuesIn(layers), layer_name);

TEST(QuantizedConv, Weights_AreRoundedPerFilter) {
  const Tensor weight =
      Tensor::from(std::vector<float>{1.27f, -0.635f, 0.004f, 0.02f, -25.4f, 12.7f, 0, 0, 0}, {3, 1, 1, 3});
  const QuantizedWeight quantized = quantize_weight(weight);
  const std::vector<float> scales = quantized.scale.to_vector<float>();
  EXPECT_FLOAT_EQ(scales[0], 0.01f);
  EXPECT_FLOAT_EQ(scales[1], 0.2f);
  EXPECT_GT(scales[2], 0);  // a filter of zeros
  EXPECT_EQ(quantized.stored.to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{255, 64, 128, 128, 1, 192, 128, 128, 128}));
  const Tensor back = dequantize_weight(quantized.stored, quantized.scale);
  for (std::int64_t i = 0; i < weight.numel(); ++i)
    EXPECT_NEAR(back.data<float>()[i], weight.data<float>()[i],
                0.5001f * scales[static_cast<std::size_t>(i / 3)]);
}

TEST(QuantizedConv, WholeGroups_HaveWeightsOfZeroAtTheEnd) {
  for (const std::int64_t channels : {1, 3, 4, 6}) {
    const Tensor weight = random_tensor({2, 3, 5, channels}, DType::u8, cpu_device, 1, 1, 256);
    const Tensor wide = with_whole_groups({weight, Tensor()}).stored;
    const std::int64_t count = (channels + channel_group - 1) / channel_group * channel_group;
    ASSERT_EQ(wide.shape(), Shape({2, 3, 5, count}));
    const auto from = weight.to_vector<std::uint8_t>(), to = wide.to_vector<std::uint8_t>();
    for (std::int64_t i = 0; i < std::ssize(to); ++i)
      EXPECT_EQ(to[static_cast<std::size_t>(i)],
                i % count < channels ? from[static_cast<std::size_t>(i / count * channels + i % count)]
                                     : stored_weight_zero);
  }
}

TEST(QuantizedConv, Images_AreRoundedToTheNearestLevel) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  // In steps of a half, from a zero of 31: ties go to even numbers of steps.
  const std::vector<float> values{0,      0.24f,  0.25f, 0.26f,  -0.25f,    0.75f,     -0.75f,
                                  111.9f, 112.3f, 1e30f, -15.5f, -infinity, +infinity, nan};
  const std::vector<std::uint8_t> expected{31, 31, 31, 32, 31, 33, 29, 255, 255, 255, 0, 0, 255, 0};
  const auto count = static_cast<std::int64_t>(values.size());
  const Quantization halves{.scale = 0.5f, .zero = 31};
  const Tensor x = Tensor::from(values, {1, 1, count, 1});
  EXPECT_EQ(quantize_images(x, halves, 1).to_vector<std::uint8_t>(), expected);
  EXPECT_EQ(quantize_images(Tensor::empty({0, 4, 4, 3}, DType::f32), halves, 4).shape(), Shape({0, 4, 4, 4}));
}

TEST(QuantizedConv, Images_OfManyPixelsAreRoundedAlike) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t wide : {3, 4}) {
      const Tensor x = random_tensor({3, 57, 91, 3}, dtype, cpu_device, 1, -2, 9);
      const auto stored = quantize_images(x, input, wide).to_vector<std::uint8_t>();
      const std::vector<double> values = values_of(x);
      const float inverse = 1 / input.scale;
      ASSERT_EQ(std::ssize(stored), 3 * 57 * 91 * wide);
      for (std::size_t i = 0; i < stored.size(); ++i) {
        const std::size_t pixel = i / static_cast<std::size_t>(wide), c = i % static_cast<std::size_t>(wide);
        const float value = c < 3 ? static_cast<float>(values[pixel * 3 + c]) : 0;
        ASSERT_EQ(stored[i], std::clamp(std::nearbyint(value * inverse) + input.zero, 0.0f, 255.0f)) << i;
      }
    }
}

TEST(QuantizedConv, MaxPool_EqualsThatOfF32) {
  struct Case {
    std::int64_t height, width, channels, kernel, stride, padding;
  };
  for (const Case& one : {Case{1, 1, 1, 1, 1, 0}, Case{9, 8, 64, 3, 2, 1}, Case{7, 7, 33, 2, 2, 0},
                          Case{5, 3, 16, 3, 1, 1}, Case{3, 3, 5, 3, 2, 1}}) {
    const Tensor x =
        random_tensor({2, one.height, one.width, one.channels}, DType::u8, cpu_device, 1, 0, 256);
    const YX kernel{one.kernel, one.kernel};
    const Window window{.stride = one.stride, .padding = one.padding};
    EXPECT_EQ(values_of(quantized_max_pool2d(x, kernel, window)),
              values_of(max_pool2d(cast(x, DType::f32), kernel, window)));
  }
  EXPECT_EQ(quantized_max_pool2d(Tensor::empty({0, 4, 4, 8}, DType::u8), {3, 3}, {.stride = 2, .padding = 1})
                .shape(),
            Shape({0, 2, 2, 8}));
}

TEST(QuantizedConv, Stem_IsThePooledConvolutionOfRoundedImages) {
  const Window window{.stride = 2, .padding = 1};
  const Tensor bias = random_tensor({64}, DType::f32, cpu_device, 3);
  const Conv2dOptions options{.window = {.stride = 2, .padding = 3}};
  for (const std::int64_t channels : {1, 3, 4}) {
    const QuantizedWeight weight = with_whole_groups(
        quantize_weight(random_tensor({64, 7, 7, channels}, DType::f32, cpu_device, 2, -0.1, 0.1)));
    const QuantizedConv2d conv =
        prepack_quantized_conv2d(weight, bias, options, input, {.scale = 0.02f, .zero = 0});
    for (const Shape& size : {Shape{1, 7, 7}, Shape{3, 33, 46}, Shape{0, 9, 9}})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Tensor x = random_tensor({size[0], size[1], size[2], channels}, dtype, cpu_device, 1, -1, 6);
        const Tensor stored = quantize_images(x, input, weight.stored.size(3));
        EXPECT_EQ(values_of(quantized_stem(conv, x, {3, 3}, window)),
                  values_of(quantized_max_pool2d(quantized_conv2d(conv, stored, FusedActivation::relu),
                                                 {3, 3}, window)));
      }
  }
}

TEST(QuantizedConv, ImageMean_EqualsThatOfValues) {
  const Tensor x = random_tensor({3, 5, 7, 19}, DType::u8, cpu_device, 1, 0, 256);
  const Tensor means = quantized_image_mean(x, input);
  const std::vector<double> values = values_of(values_of_stored(x, input));
  std::vector<double> expected(3 * 19);
  for (std::size_t i = 0; i < values.size(); ++i) expected[i / (35 * 19) * 19 + i % 19] += values[i] / 35;
  expect_values(means, expected, 1e-6);
}

TEST(QuantizedConv, WrongInput_IsAnError) {
  const QuantizedWeight weight = quantize_weight(random_tensor({4, 3, 3, 8}, DType::f32, cpu_device, 1));
  const Tensor bias = random_tensor({4}, DType::f32, cpu_device, 2);
  const QuantizedConv2d conv = prepack_quantized_conv2d(weight, bias, {}, input, result);
  expect_error(
      [&] {
        quantized_conv2d(conv, Tensor::empty({1, 4, 4, 8}, DType::f32), FusedActivation::none);
      },
      "expected u8 images (n, height, width, channels), got [1, 4, 4, 8] of f32");
  expect_error(
      [&] {
        quantized_conv2d(conv, Tensor::empty({1, 4, 4, 7}, DType::u8), FusedActivation::none);
      },
      "channels");
  expect_error(
      [&] {
        quantized_conv2d(conv, Tensor::empty({1, 4, 4, 8}, DType::u8), FusedActivation::none,
                         {Tensor::empty({1, 4, 4, 4}, DType::u8), result});
      },
      "expected a residual of shape [1, 2, 2, 4] of u8");
  expect_error(
      [&] {
        prepack_quantized_conv2d(weight, random_tensor({5}, DType::f32, cpu_device, 2), {}, input, result);
      },
      "expected bias (4) of f32, got [5]");
  expect_error(
      [&] {
        quantized_stem(conv, Tensor::empty({1, 4, 4, 8}, DType::u8), {3, 3}, {});
      },
      "expected images (n, height, width, channels) of f32 or bf16, got [1, 4, 4, 8] of u8");
  expect_error(
      [&] {
        quantized_max_pool2d(Tensor::empty({1, 1, 1, 1}, DType::u8), {3, 3}, {});
      },
      "at least 3x3");
}

}  // namespace
}  // namespace tandem::detail
