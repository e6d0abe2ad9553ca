#include "tandem/nn/mlp.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/nn/activation.h"
#include "tandem/nn/dropout.h"
#include "tandem/nn/linear.h"

namespace tandem {
namespace {

void check_layers(const std::vector<std::int64_t>& layers) {
  constexpr std::int64_t max_weights = std::int64_t{1} << 40;
  check(layers.size() >= 2, "[mlp] expected at least two layer sizes, such as 784,200,10, got {}",
        layers.empty() ? "none" : fmt::format("{}", fmt::join(layers, ",")));
  std::int64_t weights = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    check(layers[i] > 0, "[mlp] expected layer sizes of 1 or more, got {}", fmt::join(layers, ","));
    std::int64_t added = 0;
    const bool in_range =
        i == 0 || (!__builtin_mul_overflow(layers[i - 1], layers[i], &added) &&
                   !__builtin_add_overflow(weights, added, &weights) && weights <= max_weights);
    check(in_range, "[mlp] expected at most 2^40 weights, got layers {}", fmt::join(layers, ","));
  }
}

}  // namespace

std::unique_ptr<Sequential> make_mlp(const MlpOptions& options) {
  check_layers(options.layers);
  auto network = std::make_unique<Sequential>();
  const std::size_t count = options.layers.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    network->emplace<Linear>(
        options.layers[i], options.layers[i + 1],
        LinearOptions{.random = {.seed = options.seed, .stream = i, .dtype = options.dtype}});
    if (i + 1 == count) break;
    network->emplace<ActivationLayer>(options.activation);
    if (options.dropout != 0)
      network->emplace<Dropout>(options.dropout, options.seed, static_cast<std::uint32_t>(i));
  }
  if (options.sigmoid_output) network->emplace<ActivationLayer>(Activation::sigmoid);
  return network;
}

}  // namespace tandem
