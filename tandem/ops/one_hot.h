// Labels as rows: 1 at the label, 0 elsewhere. What a squared error on classes is taken against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// labels (n) i32 or i64 give (n, classes) of a floating dtype. A label outside [0, classes) is an Error on
// the CPU; on CUDA its row is NaN.
Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype = DType::f32);

// Dense; classes is not 0.
template <Backend B>
void one_hot_kernel(DType dtype, DType label_dtype, std::int64_t rows, std::int64_t classes, std::byte* out,
                    const std::byte* labels, StreamView stream);

}  // namespace tandem
