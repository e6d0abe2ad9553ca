// Parts that the backbones of torchvision's networks have in common. Not for users.
#pragma once

#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/nn/conv2d.h"

namespace tandem::detail {

// Gives each layer with random weights its own stream of the seed.
class StreamCounter {
 public:
  explicit StreamCounter(std::uint64_t seed) : seed_(seed) {}
  RandomOptions next() { return {.seed = seed_, .stream = next_++}; }

 private:
  std::uint64_t seed_, next_ = 0;
};

// A square window whose padding keeps the size but for the stride.
inline Conv2dLayerOptions conv_options(std::int64_t kernel, std::int64_t stride,
                                       const RandomOptions& random) {
  const std::int64_t padding = kernel / 2;
  return {.kernel = {kernel, kernel},
          .window = {.stride = {stride, stride}, .padding = {padding, padding}},
          .random = random};
}

// Groups children under a name, as torchvision does; it is never called.
class Container : public Module {
 public:
  using Module::add_child;
  Tensor forward(const Tensor&) override {
    fail("[model] expected no call of forward() on a container of layers");
  }
};

}  // namespace tandem::detail
