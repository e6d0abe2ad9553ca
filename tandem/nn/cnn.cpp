#include "tandem/nn/cnn.h"

#include <string>

#include "tandem/core/check.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"

namespace tandem {
namespace {

constexpr int stages = 3, layers_in_stage = 2;

}  // namespace

Cnn::Cnn(const CnnOptions& options)
    : BackboneModel(options.width << (stages - 1), options.classes, options.seed), options_(options) {
  std::int64_t in = options.channels;
  for (int i = 0; i < stages * layers_in_stage; ++i) {
    const std::int64_t out = options.width << (i / layers_in_stage);
    layers_.push_back(std::make_unique<ConvNorm>(
        in, out,
        Conv2dLayerOptions{.window = {.padding = {1, 1}},
                           .random = {.seed = options.seed, .stream = static_cast<std::uint64_t>(i)}}));
    const std::string number = std::to_string(i + 1);
    add_child("conv" + number, layers_.back()->conv());
    add_child("bn" + number, layers_.back()->norm());
    in = out;
  }
  add_child("fc", head_layer());
}

Tensor Cnn::features(const Tensor& x) {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[cnn] expected images (n, height, width, {}), got {}", options_.channels, x.shape().to_string());
  Tensor y = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0 && i % layers_in_stage == 0) y = max_pool2d(y, {2, 2}, {.stride = {2, 2}});
    y = layers_[i]->forward(y, true);
  }
  y = adaptive_avg_pool2d(y, {1, 1});
  return cast(y.reshape({y.size(0), y.size(3)}), DType::f32);
}

void Cnn::freeze_statistics() {
  for (const auto& layer : layers_) layer->norm().freeze_statistics();
}

}  // namespace tandem
