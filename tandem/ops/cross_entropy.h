// Softmax cross-entropy, fused with its gradient: the forward pass also computes (p − target) / n when a
// gradient is needed, so backward() only scales it.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The mean cross-entropy over the batch, of shape []. logits (n, classes) f32, f64 or bf16 (computed in
/// f32); labels (n) i32 or i64. With label smoothing s the target is s / classes everywhere plus 1 − s at the
/// label. Throws Error for an empty batch. A label outside [0, classes) throws Error on the CPU; on CUDA,
/// where a check would have to synchronize, it makes the loss and its row of the gradient NaN.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing = 0);

}  // namespace tandem
