// The definition of maximum() in plain loops. The build tells the compiler not to vectorize *_reference.cpp,
// so that the studies show what SIMD gains.
#include "tandem/core/convert.h"
#include "tandem/core/on_dtype.h"
#include "tandem/ops/maximum_kernel.h"

namespace tandem::detail {

template <>
void maximum_kernel<Version::reference>(DType dtype, const Layout<3>& layout, std::int64_t columns,
                                        std::byte* out, const std::byte* a, const std::byte* b, StreamView) {
  on_dtype(AllTypes{}, dtype, "maximum", [&]<class T>() {
    auto* c = reinterpret_cast<T*>(out);
    auto* x = reinterpret_cast<const T*>(a);
    auto* y = reinterpret_cast<const T*>(b);
    for (std::int64_t i = 0; i < layout.numel / columns; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        using C = ComputeType<T>;
        const std::int64_t index = i * columns + j;
        c[index] = convert<T>(Maximum{}(convert<C>(x[index]), convert<C>(y[index])));
      }
  });
}

}  // namespace tandem::detail
