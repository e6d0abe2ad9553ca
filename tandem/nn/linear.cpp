#include "tandem/nn/linear.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/nn/init.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/linear.h"

namespace tandem {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  check(in > 0 && out > 0, "[linear] expected sizes of 1 or more, got {} and {}", in, out);
  weight_ = xavier_uniform({out, in}, options.random);
  add_parameter("weight", weight_);
  if (!options.bias) return;
  bias_ = zeros({out}, options.random.dtype, options.random.device);
  add_parameter("bias", bias_);
}

Linear::Linear(Linear&& other) noexcept
    : Module(), weight_(std::move(other.weight_)), bias_(std::move(other.bias_)) {
  take_registrations(other, {&weight_, &bias_});
}

Linear& Linear::operator=(Linear&& other) noexcept {
  if (this == &other) return *this;
  mark_replaced(weight_);
  mark_replaced(bias_);
  weight_ = std::move(other.weight_);
  bias_ = std::move(other.bias_);
  take_registrations(other, {&weight_, &bias_});
  return *this;
}

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight_, bias_);
}

}  // namespace tandem
