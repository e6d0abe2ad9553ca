// `cuda-simple` of the products of a linear layer: one block per row of the result, one thread per column.
#include <algorithm>
#include <cstdint>

#include "tandem/device/cuda.h"
#include "tandem/ops/linear_products_kernel.h"

namespace tandem::detail {
namespace {

template <class T>
__global__ void product_row_per_block(ProductShape s, const T* a, const T* b, const T* bias, T* out) {
  for (std::int64_t i = blockIdx.x; i < s.rows; i += gridDim.x)
    for (std::int64_t j = threadIdx.x; j < s.columns; j += blockDim.x)
      out[i * s.columns + j] = product_element(s, a, b, bias, i, j);
}

}  // namespace

template <>
void naive_product_kernel<Version::cuda_simple>(DType dtype, const ProductShape& shape, const std::byte* a,
                                                const std::byte* b, const std::byte* bias, std::byte* out,
                                                StreamView stream) {
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(shape.rows, 1 << 30));
  const auto threads = static_cast<unsigned>(std::min<std::int64_t>(shape.columns, 1024));
  on_dtype(ProductTypes{}, dtype, "linear products", [&]<class T>() {
    product_row_per_block<<<blocks, threads, 0, cuda_stream(stream)>>>(
        shape, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), reinterpret_cast<const T*>(bias),
        reinterpret_cast<T*>(out));
  });
  check_launch("linear products (cuda-simple)");
}

}  // namespace tandem::detail
