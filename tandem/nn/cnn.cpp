#include "tandem/nn/cnn.h"

#include <fmt/ranges.h>

#include <string>

#include "tandem/core/check.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/conv/pool.h"

namespace tandem {
namespace {

constexpr int stage_total = 3, layers_in_stage = 2;

}  // namespace

Cnn::Cnn(const CnnOptions& options)
    : BackboneModel(options.width << (stage_total - 1), options.classes, options.seed), options_(options) {
  std::int64_t in = options.channels;
  for (int i = 0; i < stage_total * layers_in_stage; ++i) {
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

Tensor Cnn::stage(int index, const Tensor& x) {
  check(index > 0 || (x.rank() == 4 && x.size(3) == options_.channels),
        "[cnn] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
  Tensor y = index > 0 ? max_pool2d(x, {2, 2}, {.stride = {2, 2}}) : x;
  for (int i = 0; i < layers_in_stage; ++i)
    y = layers_[static_cast<std::size_t>(index * layers_in_stage + i)]->forward(y, FusedActivation::relu);
  return y;
}

Tensor Cnn::features(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < stage_total; ++i) y = stage(i, y);
  return image_mean(y);
}

Tensor Cnn::stage_features(const Tensor& x) {
  static_assert(stage_total == 3);
  std::vector<Tensor> means;
  Tensor y = x;
  for (int i = 0; i < stage_total; ++i) means.push_back(image_mean(y = stage(i, y)));
  return concat(means, 1);
}

std::vector<std::vector<std::string>> Cnn::stages() const {
  std::vector<std::vector<std::string>> all(static_cast<std::size_t>(stage_total));
  for (int i = 0; i < stage_total * layers_in_stage; ++i) {
    const std::string number = std::to_string(i + 1);
    for (const char* const layer : {"conv", "bn"})
      all[static_cast<std::size_t>(i / layers_in_stage)].push_back(layer + number);
  }
  return all;
}

void Cnn::freeze_statistics() {
  for (const auto& layer : layers_) layer->norm().freeze_statistics();
}

}  // namespace tandem
