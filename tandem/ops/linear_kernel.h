// Kernel of linear() (linear.h) for few rows on CUDA.
#pragma once

#include <cstdint>

#include "tandem/device/stream.h"

namespace tandem::detail {

inline constexpr std::int64_t max_few_rows = 4;

// Contiguous memory in f32; x and weight are aligned to 16 bytes.
struct FewRowsPlan {
  std::int64_t rows;     // at most max_few_rows
  std::int64_t columns;  // of the result
  std::int64_t depth;    // a multiple of 4
  float* y;              // (rows, columns)
  const float* x;        // (rows, depth)
  const float* weight;   // (columns, depth)
  const float* bias;     // (columns), or null
};

template <Backend B>
void few_rows_linear_kernel(const FewRowsPlan& plan, StreamView stream);

}  // namespace tandem::detail
