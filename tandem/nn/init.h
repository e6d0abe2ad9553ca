// Initial weights from the counter-based generator. They are drawn on the CPU and copied, so that every
// device starts from the same bits; a parameter is told apart from the others of its network by a stream
// number.
#pragma once

#include "tandem/ops/random.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// For weights (out, in, …): fan_in = in · …, fan_out = out · …, where … are the sizes of a kernel. Fewer than
// two axes are an Error. Xavier (Glorot): variance 2 / (fan_in + fan_out), for sigmoid and tanh; He
// (Kaiming): 2 / fan_in, for ReLU.
Tensor xavier_uniform(const Shape& shape, const RandomOptions& options = {});
Tensor xavier_normal(const Shape& shape, const RandomOptions& options = {});
Tensor he_uniform(const Shape& shape, const RandomOptions& options = {});
Tensor he_normal(const Shape& shape, const RandomOptions& options = {});

}  // namespace tandem
