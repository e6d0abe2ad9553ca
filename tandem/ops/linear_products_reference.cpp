// The definition of a matrix product in plain loops. The build tells the compiler not to vectorize
// *_reference.cpp, so that the studies show what SIMD gains.
#include "tandem/ops/linear_products_kernel.h"

namespace tandem::detail {

template <>
void naive_product_kernel<Version::reference>(DType dtype, const ProductShape& shape, const std::byte* a,
                                              const std::byte* b, const std::byte* bias, std::byte* out,
                                              StreamView) {
  on_dtype(ProductTypes{}, dtype, "linear products", [&]<class T>() {
    auto* x = reinterpret_cast<const T*>(a);
    auto* y = reinterpret_cast<const T*>(b);
    auto* start = reinterpret_cast<const T*>(bias);
    auto* result = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < shape.rows; ++i)
      for (std::int64_t j = 0; j < shape.columns; ++j)
        result[i * shape.columns + j] = product_element(shape, x, y, start, i, j);
  });
}

}  // namespace tandem::detail
