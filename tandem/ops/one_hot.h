// One-hot encoding of class labels, e.g. as the target of a squared error loss.
#pragma once

#include <cstdint>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// (n, classes) with 1 at the label and 0 elsewhere, for labels (n) of i32 or i64 and a floating dtype. A
/// label outside [0, classes) throws Error on the CPU; on CUDA, where a check would have to synchronize, its
/// row is NaN.
Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype = DType::f32);

}  // namespace tandem
