// The definition of correlate() in plain loops. The build tells the compiler not to vectorize
// *_reference.cpp, so that the studies show what SIMD gains.
#include "tandem/ops/correlate_kernel.h"

namespace tandem::detail {
namespace {

template <class T>
void correlate_reference(const CorrelateShape& s, const T* image, const T* kernel, T* out) {
  for (std::int64_t y = 0; y < s.height; ++y)
    for (std::int64_t x = 0; x < s.width; ++x) out[y * s.width + x] = correlate_pixel(s, image, kernel, y, x);
}

}  // namespace

template <>
void correlate_kernel<Version::reference>(DType dtype, const CorrelateShape& shape, const std::byte* image,
                                          const std::byte* kernel, std::byte* out, StreamView) {
  on_dtype(FloatingTypes{}, dtype, "correlate", [&]<class T>() {
    correlate_reference(shape, reinterpret_cast<const T*>(image), reinterpret_cast<const T*>(kernel),
                        reinterpret_cast<T*>(out));
  });
}

}  // namespace tandem::detail
