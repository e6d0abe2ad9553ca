#include "tandem/nn/quantized_resnet.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "tandem/core/check.h"
#include "tandem/ops/conv/fold_batch_norm.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/ops/conv/quantized_chain.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

using detail::Quantization;

constexpr YX first_pool_kernel{3, 3};
constexpr Window first_pool_window{.stride = {2, 2}, .padding = {1, 1}};
constexpr double norm_epsilon = ConvNormOptions{}.epsilon;

// One convolution with its norm. Values are numbered: 0 is the pooled result of the first convolution, i that
// of convolution i.
struct ConvStep {
  std::string conv, norm;  // names in the state dict
  Shape weight = {};       // (out, kernel y, kernel x, channels)
  std::int64_t stride = 1;
  std::size_t input = 0;
  std::optional<std::size_t> residual = {};
  bool has_relu = true;

  Conv2dOptions options() const {
    return {.window = {.stride = {stride, stride}, .padding = {weight[1] / 2, weight[2] / 2}}};
  }
  FusedActivation activation() const { return has_relu ? FusedActivation::relu : FusedActivation::none; }
};

const Tensor* find(const NamedTensors& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &NamedTensor::name);
  return found == state.end() ? nullptr : &found->tensor;
}

// A weight of a state dict, (out, channels, kernel y, kernel x), as convolutions use it.
Tensor conv_weight(const NamedTensors& state, const std::string& conv) {
  const Tensor* const weight = find(state, conv + ".weight");
  expect(weight != nullptr);
  return weight->permute({0, 2, 3, 1});
}

// The convolutions in the order in which they are computed.
std::vector<ConvStep> steps_of(const NamedTensors& state) {
  std::vector<ConvStep> steps{
      {.conv = "conv1", .norm = "bn1", .weight = conv_weight(state, "conv1").shape(), .stride = 2}};
  std::size_t last = 0;  // the value that the next block gets
  for (int stage = 1; stage <= 4; ++stage)
    for (int i = 0; find(state, fmt::format("layer{}.{}.conv1.weight", stage, i)); ++i) {
      const std::string block = fmt::format("layer{}.{}.", stage, i);
      const std::size_t block_input = last;
      const bool has_projection = find(state, block + "downsample.0.weight") != nullptr;
      std::int64_t stride = stage > 1 && i == 0 ? 2 : 1;
      std::vector<ConvStep> convs;
      for (int k = 1; find(state, fmt::format("{}conv{}.weight", block, k)); ++k) {
        ConvStep step{.conv = fmt::format("{}conv{}", block, k), .norm = fmt::format("{}bn{}", block, k)};
        step.weight = conv_weight(state, step.conv).shape();
        if (step.weight[1] == 3) step.stride = std::exchange(stride, 1);  // the first 3×3 of the block
        convs.push_back(std::move(step));
      }
      if (has_projection) {
        ConvStep step{.conv = block + "downsample.0", .norm = block + "downsample.1", .has_relu = false};
        step.weight = conv_weight(state, step.conv).shape();
        step.stride = stage > 1 && i == 0 ? 2 : 1;
        convs.insert(convs.end() - 1, std::move(step));  // its result is the last one's residual
      }
      for (std::size_t k = 0; k < convs.size(); ++k) {
        ConvStep& step = convs[k];
        const bool is_last = k + 1 == convs.size();
        step.input = step.has_relu ? last : block_input;
        if (is_last) step.residual = has_projection ? steps.size() - 1 : block_input;
        if (step.has_relu) last = steps.size();
        steps.push_back(std::move(step));
      }
    }
  return steps;
}

// Activations after ReLU use 0 … 255, others −127 … 127 around 128.
Quantization quantization(double limit, bool has_relu) {
  const double steps = has_relu ? 255 : 127;
  return {.scale = limit > 0 ? static_cast<float>(std::max(limit / steps, 1e-30)) : 1,
          .zero = has_relu ? 0.0f : 128.0f};
}

// Images use 0 … 255 for their whole range, in which padding, 0, has a level of its own.
Quantization image_quantization(float min, float max) {
  const float scale = max > min ? std::max((max - min) / 255, 1e-30f) : 1;
  return {.scale = scale, .zero = std::clamp(std::round(-min / scale), 0.0f, 255.0f)};
}

// As it is stored: scale and zero in f32.
Tensor stored_values(const Quantization& values) {
  return Tensor::from(std::vector<float>{values.scale, values.zero}, {2});
}
Quantization quantization_of(const Tensor& stored) {
  const std::vector<float> values = stored.to_vector<float>();
  return {values[0], values[1]};
}

void check_values(const Quantization& values, const std::string& name) {
  check(std::isfinite(values.scale) && values.scale > 0 && values.zero >= 0 && values.zero <= 255 &&
            values.zero == std::floor(values.zero),
        "[int8] expected a positive scale and a whole number from 0 to 255 as {}, got {} and {}", name,
        values.scale, values.zero);
}

}  // namespace

struct QuantizedResNet::Layer {
  ConvStep step;
  Tensor weight;  // u8: (out, channels, kernel y, kernel x), as in files
  Tensor scale;   // f32 (out)
  Tensor bias;    // f32 (out)
  Tensor output;  // scale and zero of the result
  std::optional<detail::QuantizedConv2d> conv;
};

QuantizedResNet::QuantizedResNet(const ResNet& like)
    : channels_(like.options().channels),
      images_(stored_values({})),
      head_(find(like.state_dict(), "fc.weight")->size(1), like.options().classes) {
  add_buffer("images", images_);
  for (ConvStep& step : steps_of(like.state_dict())) {
    const Shape weight = step.weight;
    layers_.push_back(std::make_unique<Layer>());
    Layer& layer = *layers_.back();
    layer.step = std::move(step);
    layer.weight = zeros({weight[0], weight[3], weight[1], weight[2]}, DType::u8);
    layer.scale = Tensor::from(std::vector<float>(static_cast<std::size_t>(weight[0]), 1), {weight[0]});
    layer.bias = zeros({weight[0]});
    layer.output = stored_values({});
    const std::string& name = layer.step.conv;
    add_buffer(name + ".weight", layer.weight);
    add_buffer(name + ".scale", layer.scale);
    add_buffer(name + ".bias", layer.bias);
    add_buffer(name + ".output", layer.output);
  }
  add_child("fc", head_);
}

QuantizedResNet::~QuantizedResNet() = default;

void QuantizedResNet::check_scales() const {
  check_values(image_values(), "images");
  for (const auto& layer : layers_) {
    for (const float scale : layer->scale.to_vector<float>())
      check(std::isfinite(scale) && scale > 0, "[int8] expected positive numbers as {}.scale, got {}",
            layer->step.conv, scale);
    check_values(quantization_of(layer->output), layer->step.conv + ".output");
  }
}

Quantization QuantizedResNet::image_values() const {
  return quantization_of(images_);
}

std::vector<QuantizedConvolution> QuantizedResNet::convolutions() const {
  std::vector<QuantizedConvolution> all;
  for (const auto& layer : layers_)
    all.push_back({.name = layer->step.conv,
                   .weight = layer->weight,
                   .scale = layer->scale,
                   .bias = layer->bias,
                   .options = layer->step.options(),
                   .input = layer->step.input,
                   .residual = layer->step.residual,
                   .has_relu = layer->step.has_relu,
                   .output = quantization_of(layer->output)});
  return all;
}

YX QuantizedResNet::pool_kernel() const {
  return first_pool_kernel;
}

Window QuantizedResNet::pool_window() const {
  return first_pool_window;
}

void QuantizedResNet::prepare() {
  if (is_prepared_ && prepared_revision_ == revision()) return;
  check_scales();
  for (const auto& layer : layers_) {
    const bool is_first = layer == layers_.front();
    const detail::QuantizedWeight weight{layer->weight.permute({0, 2, 3, 1}).contiguous(), layer->scale};
    layer->conv = detail::prepack_quantized_conv2d(
        is_first ? detail::with_whole_groups(weight) : weight, layer->bias, layer->step.options(),
        is_first ? image_values() : layers_[layer->step.input]->conv->result, quantization_of(layer->output));
  }
  packed_head_.reset();
  if (const Tensor weight = head_.weight(); !weight.device().is_cuda())
    packed_head_ = detail::prepack_conv2d(weight.detach().reshape({weight.size(0), 1, 1, weight.size(1)}),
                                          head_.bias().detach(), {}, DType::f32);
  prepared_revision_ = revision();
  is_prepared_ = true;
}

Tensor QuantizedResNet::forward(const Tensor& x) {
  const NoGrad no_grad;
  const Tensor found = features(x);
  const std::int64_t images = found.size(0);
  if (!packed_head_ || images == 0) return head_.forward(found);
  return detail::prepacked_conv2d(*packed_head_, found.reshape({images, 1, 1, found.size(1)}))
      .reshape({images, head_.weight().size(0)});
}

Tensor QuantizedResNet::features(const Tensor& x) {
  common_device("int8", {&x, &layers_.front()->weight});
  check(x.rank() == 4 && x.size(3) == channels_, "[int8] expected images (n, height, width, {}), got {}",
        channels_, x.shape());
  const NoGrad no_grad;
  prepare();
  std::vector<detail::QuantizedStep> steps;
  for (const auto& layer : std::span(layers_).subspan(1))
    steps.push_back({&*layer->conv, layer->step.activation(), layer->step.input, layer->step.residual});
  return detail::quantized_features({&*layers_.front()->conv, first_pool_kernel, first_pool_window}, steps,
                                    x);
}

struct ResNetCalibration::Layer {
  ConvStep step;
  Tensor weight, bias;  // folded, f32
  detail::PrepackedConv2d conv;
  detail::ActivationHistogram activations = {};
};

ResNetCalibration::ResNetCalibration(ResNet& model) : model_(model) {
  const NamedTensors state = model.state_dict();
  for (ConvStep& step : steps_of(state)) {
    const auto norm = [&](const char* part) { return find(state, step.norm + part)->contiguous(); };
    const Tensor weight = conv_weight(state, step.conv).contiguous(), gain = norm(".weight"),
                 bias = norm(".bias"), mean = norm(".running_mean"), variance = norm(".running_var");
    const detail::FoldedConv folded =
        detail::fold_batch_norm(weight, {gain, bias, mean, variance, norm_epsilon}, DType::f32);
    const Conv2dOptions options = step.options();
    layers_.push_back(std::make_unique<Layer>(
        Layer{.step = std::move(step),
              .weight = folded.weight,
              .bias = folded.bias,
              .conv = detail::prepack_conv2d(folded.weight, folded.bias, options, DType::f32)}));
  }
}

ResNetCalibration::~ResNetCalibration() = default;

Tensor ResNetCalibration::observe(const Tensor& x) {
  const NoGrad no_grad;
  const Tensor images = x.contiguous();
  for (const float value : std::span(images.data<float>(), static_cast<std::size_t>(images.numel()))) {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  std::vector<ConvStep> steps;
  for (const auto& layer : layers_) steps.push_back(layer->step);
  const auto compute = [&](std::size_t i, const Tensor& input, const Tensor& residual) {
    Layer& layer = *layers_[i];
    Tensor y = detail::prepacked_conv2d(layer.conv, input, residual, layer.step.activation());
    layer.activations.add({y.data<float>(), static_cast<std::size_t>(y.numel())});
    return y;
  };
  const Tensor first = max_pool2d(compute(0, x, {}), first_pool_kernel, first_pool_window);
  const Tensor last = detail::run_steps(std::span<const ConvStep>(steps).subspan(1), first,
                                        [&](std::size_t i, const Tensor& input, const Tensor& residual) {
                                          return compute(i + 1, input, residual);
                                        });
  return adaptive_avg_pool2d(last, {1, 1}).reshape({last.size(0), last.size(3)});
}

std::unique_ptr<QuantizedResNet> ResNetCalibration::quantize(detail::CalibrationMethod method) const {
  auto network = std::make_unique<QuantizedResNet>(model_);
  NamedTensors state{{"images", stored_values(image_quantization(min_, max_))}};
  for (const auto& layer : layers_) {
    const std::string& name = layer->step.conv;
    const detail::QuantizedWeight weight = detail::quantize_weight(layer->weight);
    state.push_back({name + ".weight", weight.stored.permute({0, 3, 1, 2})});
    state.push_back({name + ".scale", weight.scale});
    state.push_back({name + ".bias", layer->bias});
    const std::int64_t levels = layer->step.has_relu ? 256 : 128;
    const Quantization output = quantization(layer->activations.limit(method, levels), layer->step.has_relu);
    state.push_back({name + ".output", stored_values(output)});
  }
  for (const char* const name : {"fc.weight", "fc.bias"})
    state.push_back({name, *find(model_.state_dict(), name)});
  network->load_state_dict(state);
  network->eval();
  return network;
}

DType image_dtype(const Module& network, MatmulPrecision precision) {
  const bool in_bf16 = precision == MatmulPrecision::bf16 && !dynamic_cast<const QuantizedResNet*>(&network);
  return in_bf16 ? DType::bf16 : DType::f32;
}

}  // namespace tandem
