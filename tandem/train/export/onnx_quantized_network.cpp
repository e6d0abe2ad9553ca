#include "tandem/train/export/onnx_quantized_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/ops/conv/quantized_conv.h"

namespace tandem {
namespace {

using detail::Quantization;

struct Range {
  double min, max;
};

Range range_of(const Quantization& values) {
  return {-double{values.zero} * values.scale, (255 - double{values.zero}) * values.scale};
}

// That of a convolution's result to which a residual is added. With a smaller one the sum is at its minimum
// whatever the residual is, with a larger one at its maximum.
Quantization before_sum(const Quantization& sum, const Quantization& residual) {
  const Range result = range_of(sum), added = range_of(residual);
  const double min = std::min(result.min - added.max, 0.0), max = std::max(result.max - added.min, 0.0);
  const double scale = (max - min) / 255;
  return {.scale = static_cast<float>(scale),
          .zero = static_cast<float>(std::clamp(std::round(-min / scale), 0.0, 255.0))};
}

OnnxDims dims_of(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

class QuantizedGraph {
 public:
  QuantizedGraph(OnnxBuilder& builder, QuantizedResNet& module, bool integer_sums)
      : builder_(builder),
        module_(module),
        integer_sums_(integer_sums),
        convolutions_(module.convolutions()) {}

  std::string add(const std::string& input) {
    const std::string images = rounded(input, module_.image_values());
    values_.push_back(pooled(convolution(convolutions_.front(), images)));
    for (const QuantizedConvolution& conv : std::span(convolutions_).subspan(1))
      values_.push_back(convolution(conv, values_[conv.input]));
    const std::string means = builder_.add("GlobalAveragePool", {values_.back()});
    const Tensor &weight = module_.head().weight(), &bias = module_.head().bias();
    const std::string rows = builder_.add("Reshape", {means, builder_.integers({0, weight.size(1)})});
    return builder_.add(
        "Gemm",
        {rows, builder_.array("fc.weight", dims_of(weight), weight.detach().to_vector<float>()),
         builder_.array("fc.bias", dims_of(bias), bias.detach().to_vector<float>())},
        {onnx_attribute("transB", std::int64_t{1})});
  }

 private:
  // Rounded to 8 bits, as f32 again.
  std::string rounded(const std::string& x, const Quantization& values) {
    const std::string scale = builder_.number(values.scale, OnnxType::f32);
    const std::string zero = builder_.integer(std::lround(values.zero), OnnxType::u8);
    const std::string stored = builder_.add("QuantizeLinear", {x, scale, zero});
    return builder_.add("DequantizeLinear", {stored, scale, zero});
  }

  static OnnxBuilder::Attributes window(YX kernel, const Window& window) {
    const auto both = [](const char* name, YX yx) {
      return onnx_attribute(name, std::vector<std::int64_t>{yx.y, yx.x});
    };
    const YX padding = window.padding;
    return {both("kernel_shape", kernel), both("strides", window.stride),
            onnx_attribute("pads", std::vector<std::int64_t>{padding.y, padding.x, padding.y, padding.x})};
  }

  std::string convolve(const QuantizedConvolution& conv, const std::string& x, const std::string& weight) {
    const std::string bias =
        builder_.array(conv.name + ".bias", dims_of(conv.bias), conv.bias.to_vector<float>());
    return builder_.add("Conv", {x, weight, bias},
                        window({conv.weight.size(2), conv.weight.size(3)}, conv.options.window));
  }

  // Rounded again, which changes nothing, so that a runtime sees a pooling of integers.
  std::string pooled(const std::string& x) {
    const std::string pooled =
        builder_.add("MaxPool", {x}, window(module_.pool_kernel(), module_.pool_window()));
    return rounded(pooled, convolutions_.front().output);
  }

  std::string convolution(const QuantizedConvolution& conv, const std::string& x) {
    std::string y = convolve(conv, x, weight(conv));
    if (conv.residual) {
      if (integer_sums_) y = rounded(y, before_sum(conv.output, convolutions_[*conv.residual].output));
      y = builder_.add("Add", {y, values_[*conv.residual]});
    }
    if (conv.has_relu) y = builder_.add("Relu", {y});
    return rounded(y, conv.output);
  }

  // In f32, from i8.
  std::string weight(const QuantizedConvolution& conv) {
    std::vector<std::int8_t> levels;
    for (const std::uint8_t stored : conv.weight.to_vector<std::uint8_t>())
      levels.push_back(static_cast<std::int8_t>(stored - detail::stored_weight_zero));
    const std::int64_t filters = conv.weight.size(0);
    const std::vector<std::int8_t> zeros(static_cast<std::size_t>(filters));
    return builder_.add("DequantizeLinear",
                        {builder_.array(conv.name + ".weight", dims_of(conv.weight), levels),
                         builder_.array(conv.name + ".scale", {filters}, conv.scale.to_vector<float>()),
                         builder_.array(conv.name + ".zero", {filters}, zeros)},
                        {onnx_attribute("axis", std::int64_t{0})});
  }

  OnnxBuilder& builder_;
  QuantizedResNet& module_;
  bool integer_sums_;
  std::vector<QuantizedConvolution> convolutions_;
  std::vector<std::string> values_;  // f32, of the numbers that 8 bits have
};

}  // namespace

std::string add_quantized_network(OnnxBuilder& builder, QuantizedResNet& module, const std::string& input,
                                  bool integer_sums) {
  module.check_scales();
  return QuantizedGraph(builder, module, integer_sums).add(input);
}

}  // namespace tandem
