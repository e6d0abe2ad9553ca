// The naive matrix product of linear_products.h: its definition and its kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/on_dtype.h"
#include "tandem/device/stream.h"
#include "tandem/ops/version.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

using ProductTypes = TypeList<float, double>;

// a (rows × depth) · b (depth × columns). Strides are in elements, so that a transposed matrix is read in
// place.
struct ProductShape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  std::int64_t a_row_stride;
  std::int64_t a_column_stride;
  std::int64_t b_row_stride;
  std::int64_t b_column_stride;
};

// Element (i, j) of the result, with a plain loop. `bias` has one value per column, or is null.
template <class T>
[[gnu::always_inline]] constexpr T product_element(const ProductShape& s, const T* a, const T* b,
                                                   const T* bias, std::int64_t i, std::int64_t j) {
  T sum = bias ? bias[j] : T{0};
  for (std::int64_t p = 0; p < s.depth; ++p)
    sum += a[i * s.a_row_stride + p * s.a_column_stride] * b[p * s.b_row_stride + j * s.b_column_stride];
  return sum;
}

// For Version::reference and Version::cuda_simple; `bias` may be null.
template <Version V>
void naive_product_kernel(DType dtype, const ProductShape& shape, const std::byte* a, const std::byte* b,
                          const std::byte* bias, std::byte* out, StreamView stream);

}  // namespace tandem::detail
