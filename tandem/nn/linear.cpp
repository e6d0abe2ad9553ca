#include "tandem/nn/linear.h"

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

Tensor Linear::forward(const Tensor& x) {
  return linear(x, weight_, bias_);
}

}  // namespace tandem
