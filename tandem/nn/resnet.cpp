#include "tandem/nn/resnet.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "tandem/core/check.h"
#include "tandem/nn/backbone_parts.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/conv/prepacked_chain.h"

namespace tandem {
namespace {

using detail::Container;
using detail::conv_options;
using detail::StreamCounter;

// Number of residual blocks in each of the four stages.
std::array<int, 4> stage_sizes(int depth) {
  switch (depth) {
    case 18:
      return {2, 2, 2, 2};
    case 34:
    case 50:
      return {3, 4, 6, 3};
    default:
      fail("[resnet] expected a depth of 18, 34 or 50, got {}", depth);
  }
}

constexpr YX pool_kernel{3, 3};
constexpr Window pool_window{.stride = {2, 2}, .padding = {1, 1}};

constexpr bool has_bottlenecks(int depth) {
  return depth >= 50;
}
constexpr std::int64_t expansion(int depth) {
  return has_bottlenecks(depth) ? 4 : 1;
}

}  // namespace

// The basic block (two 3×3) or the bottleneck (1×1, 3×3, 1×1), with a projection where the shape changes.
class ResNetBlock : public Module {
 public:
  ResNetBlock(bool bottleneck, std::int64_t in, std::int64_t width, std::int64_t stride,
              StreamCounter& streams) {
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      add(in, width, conv_options(1, 1, streams.next()));
      add(width, width, conv_options(3, stride, streams.next()));
      add(width, out, conv_options(1, 1, streams.next()));
    } else {
      add(in, width, conv_options(3, stride, streams.next()));
      add(width, width, conv_options(3, 1, streams.next()));
    }
    if (stride == 1 && in == out) return;
    projection_ = std::make_unique<ConvNorm>(in, out, conv_options(1, stride, streams.next()));
    downsample_.add_child("0", projection_->conv());
    downsample_.add_child("1", projection_->norm());
    add_child("downsample", downsample_);
  }

  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) y = layers_[i]->forward(y, FusedActivation::relu);
    const Tensor residual = projection_ ? projection_->forward(x, FusedActivation::none) : x;
    return layers_.back()->forward(y, FusedActivation::relu, residual);
  }

  // Appends the convolutions of forward(x), of which the last value of `steps` is the input; false where they
  // are not folded.
  bool append_to(std::vector<detail::PrepackedStep>& steps, const Tensor& x) {
    const std::size_t input = steps.size();
    const auto append = [&](ConvNorm& layer, FusedActivation activation, std::size_t from,
                            std::optional<std::size_t> residual) {
      const detail::PrepackedConv2d* const conv = layer.folded(x);
      steps.push_back({conv, activation, from, residual});
      return conv != nullptr;
    };
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
      if (!append(*layers_[i], FusedActivation::relu, steps.size(), {})) return false;
    const std::size_t last = steps.size();
    if (projection_ && !append(*projection_, FusedActivation::none, input, {})) return false;
    return append(*layers_.back(), FusedActivation::relu, last, projection_ ? steps.size() : input);
  }

  void freeze_statistics() {
    for (const auto& each : layers_) each->norm().freeze_statistics();
    if (projection_) projection_->norm().freeze_statistics();
  }

 private:
  void add(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options) {
    layers_.push_back(std::make_unique<ConvNorm>(in, out, options));
    const std::string number = std::to_string(layers_.size());
    add_child("conv" + number, layers_.back()->conv());
    add_child("bn" + number, layers_.back()->norm());
  }

  std::vector<std::unique_ptr<ConvNorm>> layers_;
  std::unique_ptr<ConvNorm> projection_;
  Container downsample_;
};

ResNet::ResNet(const ResNetOptions& options)
    : BackboneModel(512 * expansion(options.depth), options.classes, options.seed),
      options_(options),
      stem_(options.channels, 64, conv_options(7, 2, {.seed = options.seed, .stream = 1000})) {
  add_child("conv1", stem_.conv());
  add_child("bn1", stem_.norm());
  StreamCounter streams(options.seed);
  std::int64_t in = 64, width = 64;
  const std::array<int, 4> sizes = stage_sizes(options.depth);
  for (std::size_t stage = 0; stage < sizes.size(); ++stage, width *= 2) {
    auto container = std::make_unique<Container>();
    for (int i = 0; i < sizes[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      blocks_.push_back(
          std::make_unique<ResNetBlock>(has_bottlenecks(options.depth), in, width, stride, streams));
      in = width * expansion(options.depth);
      container->add_child(std::to_string(i), *blocks_.back());
    }
    add_child("layer" + std::to_string(stage + 1), *container);
    stages_.push_back(std::move(container));
  }
  add_child("fc", head_layer());
}

ResNet::~ResNet() = default;

void ResNet::check_images(const Tensor& x) const {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[resnet] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
}

Tensor ResNet::stem(const Tensor& x) {
  check_images(x);
  return max_pool2d(stem_.forward(x, FusedActivation::relu), pool_kernel, pool_window);
}

// Of inference in bf16 on the CPU, whose convolutions are one chain; an empty handle elsewhere.
Tensor ResNet::chained_convolutions(const Tensor& x) {
  if (!detail::has_prepacked_chain(x)) return {};
  check_images(x);
  const detail::PrepackedConv2d* const first = stem_.folded(x);
  std::vector<detail::PrepackedStep> steps;
  if (!first || !std::ranges::all_of(blocks_, [&](const auto& block) { return block->append_to(steps, x); }))
    return {};
  return detail::prepacked_conv_chain({first, pool_kernel, pool_window}, steps, x);
}

Tensor ResNet::features(const Tensor& x) {
  Tensor y = chained_convolutions(x);
  if (!y.defined()) {
    y = stem(x);
    for (const auto& block : blocks_) y = block->forward(y);
  }
  return image_mean(y);
}

Tensor ResNet::stage_features(const Tensor& x) {
  Tensor y = stem(x);
  std::vector<Tensor> means;  // of all four stages
  auto block = blocks_.begin();
  for (const int size : stage_sizes(options_.depth)) {
    for (int i = 0; i < size; ++i) y = (*block++)->forward(y);
    means.push_back(image_mean(y));
  }
  return concat(std::span(means).last(3), 1);
}

void ResNet::freeze_statistics() {
  stem_.norm().freeze_statistics();
  for (const auto& block : blocks_) block->freeze_statistics();
}

}  // namespace tandem
