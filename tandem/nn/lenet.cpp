#include "tandem/nn/lenet.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"

namespace tandem {
namespace {

constexpr std::int64_t pooled_side = 5, channels1 = 6, channels2 = 16, units1 = 120, units2 = 84;

Conv2dLayerOptions convolution(std::int64_t padding, std::uint64_t seed, std::uint64_t stream) {
  return {.kernel = {5, 5},
          .window = {.padding = {padding, padding}},
          .random = {.seed = seed, .stream = stream}};
}

LinearOptions linear_layer(std::uint64_t seed, std::uint64_t stream) {
  return {.random = {.seed = seed, .stream = stream}};
}

}  // namespace

LeNet::LeNet(const LeNetOptions& options)
    : BackboneModel(units2, options.classes, options.seed),
      options_(options),
      conv1_(options.channels, channels1, convolution(2, options.seed, 0)),
      conv2_(channels1, channels2, convolution(0, options.seed, 1)),
      fc1_(pooled_side * pooled_side * channels2, units1, linear_layer(options.seed, 2)),
      fc2_(units1, units2, linear_layer(options.seed, 3)) {
  add_child("conv1", conv1_);
  add_child("conv2", conv2_);
  add_child("fc1", fc1_);
  add_child("fc2", fc2_);
  add_child("fc", head_layer());
}

Tensor LeNet::features(const Tensor& x) {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[lenet] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
  Tensor y = max_pool2d(relu(conv1_.forward(x)), {2, 2});
  y = max_pool2d(relu(conv2_.forward(y)), {2, 2});
  y = adaptive_avg_pool2d(y, {pooled_side, pooled_side});
  y = cast(y.reshape({y.size(0), -1}), DType::f32);
  return relu(fc2_.forward(relu(fc1_.forward(y))));
}

}  // namespace tandem
