// The definition of xxt() in plain loops. The build tells the compiler not to vectorize *_reference.cpp, so
// that the studies show what SIMD gains.
#include "tandem/ops/xxt_kernel.h"

namespace tandem::detail {
namespace {

template <class T>
void xxt_reference(const XxtShape& s, const T* x, T* out) {
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t j = 0; j < s.rows; ++j) {
      SumType<T> sum = 0;
      for (std::int64_t p = 0; p < s.columns; ++p)
        sum += static_cast<SumType<T>>(x[i * s.columns + p]) * static_cast<SumType<T>>(x[j * s.columns + p]);
      out[i * s.rows + j] = static_cast<T>(sum);
    }
}

}  // namespace

template <>
void xxt_kernel<Version::reference>(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out,
                                    StreamView) {
  on_dtype(XxtTypes{}, dtype, "xxt", [&]<class T>() {
    xxt_reference(shape, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(out));
  });
}

}  // namespace tandem::detail
