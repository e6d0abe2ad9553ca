#include "tandem/ops/compare_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {

template <>
void compare_kernel<Backend::cuda>(Comparison comparison, DType dtype, const Layout<3>& layout,
                                   std::byte* out, const std::byte* a, const std::byte* b,
                                   StreamView stream) {
  on_comparison(comparison, [&](auto functor) {
    on_dtype(AllTypes{}, dtype, "compare", [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<std::uint8_t*>(out),
                       reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b));
    });
  });
}

}  // namespace tandem::detail
