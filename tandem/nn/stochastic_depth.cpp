#include "tandem/nn/stochastic_depth.h"

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/conv/image_scale.h"
#include "tandem/ops/dropout_mask.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem {

StochasticDepth::StochasticDepth(double probability, std::uint64_t seed, std::uint32_t layer)
    : probability_(probability), seed_(seed), layer_(layer), step_(zeros({}, DType::i64)) {
  check(probability >= 0 && probability < 1,
        "[stochastic_depth] expected a probability of 0 or more and less than 1, got {}", probability);
  add_buffer("step", step_);
}

bool StochasticDepth::drops(const Tensor& x) const {
  return is_training() && probability_ > 0 && wants_grad(x);
}

Tensor StochasticDepth::forward(const Tensor& x, const Tensor& residual) {
  if (!drops(x)) return residual.defined() ? add(x, residual) : x;
  common_device("stochastic_depth", {&x, &step_});
  check(x.rank() > 0, "[stochastic_depth] expected x (n, …), got a scalar");
  // The number of the first local image in the whole batch: the mask does not depend on the rank.
  const ShardPart* const part = detail::shard_part();
  const std::int64_t first = part ? detail::local_rows(*part).begin : 0;
  check(!part || detail::local_rows(*part).count() == x.size(0),
        "[stochastic_depth] expected the {} rows of this part of the batch in axis 0, got shape {}",
        part ? detail::local_rows(*part).count() : 0, x.shape().to_string());
  const Tensor mask = dropout_mask({x.size(0)}, step_,
                                   {.probability = probability_,
                                    .seed = seed_,
                                    .layer = layer_,
                                    .dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32,
                                    .first_element = first});
  return scale_images(x, mask, residual);
}

}  // namespace tandem
