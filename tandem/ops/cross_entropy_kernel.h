// Kernel of cross_entropy (cross_entropy.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

struct CrossEntropySize {
  std::int64_t rows, classes;
  double label_smoothing;
  std::int64_t batch_rows;  // the mean is over this many rows; more than `rows` if other ranks have some
};

// Writes each row's loss divided by batch_rows to `losses`, in the compute type. `gradient` may be null. All operands
// are dense.
template <Backend B>
void cross_entropy_kernel(DType dtype, DType label_dtype, const CrossEntropySize& size, std::byte* losses,
                          std::byte* gradient, const std::byte* logits, const std::byte* labels,
                          StreamView stream);

}  // namespace tandem::detail
