// The convolutions of a network in 8-bit integers (quantized_conv.h), without a barrier of all threads after
// each on the CPU.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tandem/ops/conv/quantized_conv.h"

namespace tandem::detail {

// Values are numbered: 0 are the images, i > 0 is the result of step i − 1 of a chain. Of a step: the value
// that it convolves and, if there is one, that which it adds; both are of steps before it.
struct QuantizedStep {
  const QuantizedConv2d* conv;
  FusedActivation activation;
  std::size_t input;
  std::optional<std::size_t> residual;
};

// The last value; x, u8, is what step 0 convolves. The same bits as quantized_conv2d() in a loop.
Tensor quantized_conv_chain(std::span<const QuantizedStep> steps, const Tensor& x);

// The convolution of a network's images, with ReLU, and the pooling after it.
struct QuantizedStem {
  const QuantizedConv2d* conv;
  YX pool_kernel;
  Window pool_window;
};
// quantized_image_mean(quantized_conv_chain(steps, quantized_stem(stem, x))); on the CPU all of it is one
// chain.
Tensor quantized_features(const QuantizedStem& stem, std::span<const QuantizedStep> steps, const Tensor& x);

// For every value the step after which it is not needed any more; steps.size() for the last one.
template <class Step>
std::vector<std::size_t> last_uses(std::span<const Step> steps) {
  std::vector<std::size_t> last(steps.size() + 1, steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    last[steps[i].input] = i;
    if (steps[i].residual) last[*steps[i].residual] = i;
  }
  return last;
}

}  // namespace tandem::detail
