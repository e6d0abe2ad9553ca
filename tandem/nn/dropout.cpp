#include "tandem/nn/dropout.h"

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/dropout_mask.h"
#include "tandem/ops/fill.h"

namespace tandem {

Dropout::Dropout(double probability, std::uint64_t seed, std::uint32_t layer)
    : probability_(probability), seed_(seed), layer_(layer), step_(zeros({}, DType::i64)) {
  check(probability >= 0 && probability < 1,
        "[dropout] expected a probability of 0 or more and less than 1, got {}", probability);
  add_buffer("step", step_);
}

Tensor Dropout::forward(const Tensor& x) {
  if (!is_training() || probability_ == 0) return x;
  common_device("dropout", {&x, &step_});
  return multiply(
      x, dropout_mask(x.shape(), step_,
                      {.probability = probability_, .seed = seed_, .layer = layer_, .dtype = x.dtype()}));
}

}  // namespace tandem
