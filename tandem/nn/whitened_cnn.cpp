#include "tandem/nn/whitened_cnn.h"

#include <fmt/ranges.h>

#include <string>

#include "tandem/core/check.h"
#include "tandem/nn/init.h"
#include "tandem/nn/whitening.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

constexpr int stage_total = 3, layers_in_stage = 2;
constexpr YX whitening_kernel = {2, 2};
constexpr double feature_scale = 1.0 / 9;
constexpr ConvNormOptions norm_options{.momentum = 0.4, .epsilon = 1e-12};
constexpr std::uint64_t whitening_stream = 100, head_stream = 1001;

std::int64_t whitened_channels(std::int64_t channels) {
  return 2 * channels * whitening_kernel.y * whitening_kernel.x;
}

// Copies values in the axis order of files into the weight of a convolution.
void set_weight(const Conv2d& conv, const Tensor& values) {
  const Tensor& weight = conv.weight();
  copy_into(weight.detach(), values.permute({0, 2, 3, 1}).contiguous().to(weight.device()));
}

void freeze_tensor(Tensor tensor) {
  tensor.set_requires_grad(false);
}

std::int64_t last_width(const WhitenedCnnOptions& options) {
  check(options.widths.size() == stage_total, "[whitened_cnn] expected {} widths, got {}", stage_total,
        options.widths.size());
  return options.widths.back();
}

}  // namespace

WhitenedCnn::WhitenedCnn(const WhitenedCnnOptions& options)
    : BackboneModel(last_width(options), options.classes, options.seed),
      options_(options),
      whiten_(options.channels, whitened_channels(options.channels),
              {.kernel = whitening_kernel, .random = {.seed = options.seed, .stream = whitening_stream}}) {
  add_child("whiten", whiten_);
  freeze_tensor(whiten_.weight());
  std::int64_t in = whitened_channels(options.channels);
  for (int i = 0; i < stage_total * layers_in_stage; ++i) {
    const std::int64_t out = options.widths[static_cast<std::size_t>(i / layers_in_stage)];
    const RandomOptions random{.seed = options.seed, .stream = static_cast<std::uint64_t>(i)};
    ConvNorm& layer = *layers_.emplace_back(std::make_unique<ConvNorm>(
        in, out, Conv2dLayerOptions{.window = {.padding = {1, 1}}, .random = random}, norm_options));
    set_weight(layer.conv(), with_identity_filters(fan_in_uniform({out, in, 3, 3}, random)));
    freeze_tensor(layer.norm().weight());
    const std::string number = std::to_string(i + 1);
    add_child("conv" + number, layer.conv());
    add_child("bn" + number, layer.norm());
    in = out;
  }
  const RandomOptions random{.seed = options.seed, .stream = head_stream};
  set_head(Linear(in, options.classes, {.bias = false, .random = random}));
  copy_into(head_layer().weight().detach(), fan_in_uniform({options.classes, in}, random));
  add_child("fc", head_layer());
}

void WhitenedCnn::initialize(const Tensor& images, const PixelNorm& norm) {
  check(images.defined() && images.rank() == 4 && images.size(3) == options_.channels,
        "[whitened_cnn] expected images (n, height, width, {}), got {}", options_.channels, images.shape());
  set_weight(whiten_, whitening_filters(images, norm, whitening_kernel));
  invalidate_caches();
}

Tensor WhitenedCnn::features(const Tensor& x) {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[whitened_cnn] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
  Tensor y = gelu(whiten_.forward(x));
  for (std::size_t i = 0; i < layers_.size(); i += layers_in_stage) {
    y = max_pool2d(layers_[i]->conv().forward(y), {2, 2});
    y = gelu(layers_[i]->norm().forward(y));
    y = gelu(layers_[i + 1]->forward(y, FusedActivation::none));
  }
  y = max_pool2d(y, {3, 3});
  const bool is_one = y.size(1) == 1 && y.size(2) == 1;
  const Tensor values = is_one ? cast(y.reshape({y.size(0), y.size(3)}), DType::f32) : image_mean(y);
  return multiply(values, feature_scale);
}

std::vector<std::vector<std::string>> WhitenedCnn::stages() const {
  std::vector<std::vector<std::string>> all(static_cast<std::size_t>(stage_total));
  all.front().push_back("whiten");
  for (int i = 0; i < stage_total * layers_in_stage; ++i)
    for (const char* const layer : {"conv", "bn"})
      all[static_cast<std::size_t>(i / layers_in_stage)].push_back(layer + std::to_string(i + 1));
  return all;
}

void WhitenedCnn::freeze_statistics() {
  for (const auto& layer : layers_) layer->norm().freeze_statistics();
}

}  // namespace tandem
