// Classification accuracy.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

/// The fraction of rows of `logits` (n, classes) whose largest element is at the label, from 0 to 1. labels
/// (n) are i32 or i64. Synchronizes with the host. Throws Error for an empty batch and for shapes, dtypes or
/// devices that do not match.
double accuracy(const Tensor& logits, const Tensor& labels);

}  // namespace tandem
