// Softmax and log-softmax along one axis, in f32, f64 and bf16 (computed in f32). The maximum is subtracted
// first, so nothing overflows. A row that is all −∞, or contains NaN or +∞, becomes NaN, as in PyTorch. Both
// throw Error for integer dtypes, scalars and an axis out of range.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// exp(x) / Σ exp(x) along `axis`.
Tensor softmax(const Tensor& x, int axis = -1);
/// log(softmax(x)) along `axis`, without the loss of precision of computing it in two steps.
Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace tandem
