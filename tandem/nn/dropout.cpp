#include "tandem/nn/dropout.h"

#include <fmt/ranges.h>

#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/dropout_mask.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/random_stream.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Default streams count up from 2⁶³, so their lower half is as distinct as a layer number can be.
std::uint32_t layer_of(const detail::RandomStream& key) {
  return static_cast<std::uint32_t>(key.stream);
}

// The number that the first local element has in the tensor of the whole batch, so that the mask of a row
// does not depend on the rank that has it. A parameter is the same on all ranks, and so is its mask.
std::int64_t first_element_of(const Tensor& x) {
  const ShardPart* const part = detail::shard_part();
  const bool is_parameter = x.node() && x.node()->inputs.empty();
  if (!part || is_parameter || x.numel() == 0) return 0;
  const IndexRange rows = detail::local_rows(*part);
  check(x.rank() > 0 && x.size(0) % rows.count() == 0,
        "[dropout] expected the {} rows of this part of the batch in axis 0, got shape {}", rows.count(),
        x.shape());
  return rows.begin * (x.numel() / rows.count());
}

}  // namespace

Dropout::Dropout(double probability) : Dropout(probability, detail::random_stream({}, {})) {}

Dropout::Dropout(double probability, const detail::RandomStream& key)
    : Dropout(probability, key.seed, layer_of(key)) {}

Dropout::Dropout(Dropout&& other) noexcept
    : Module(),
      probability_(other.probability_),
      seed_(other.seed_),
      layer_(other.layer_),
      step_(std::move(other.step_)) {
  take_registrations(other, {&step_});
}

Dropout::Dropout(double probability, std::uint64_t seed, std::uint32_t layer)
    : probability_(probability), seed_(seed), layer_(layer), step_(zeros({}, DType::i64)) {
  check(probability >= 0 && probability < 1,
        "[dropout] expected a probability of 0 or more and less than 1, got {}", probability);
  add_buffer("step", step_);
}

Tensor Dropout::forward(const Tensor& x) {
  if (!is_training() || probability_ == 0) return x;
  common_device("dropout", {&x, &step_});
  return multiply(x, dropout_mask(x.shape(), step_,
                                  {.probability = probability_,
                                   .seed = seed_,
                                   .layer = layer_,
                                   .dtype = x.dtype(),
                                   .first_element = first_element_of(x)}));
}

}  // namespace tandem
