#include "tandem/ops/arithmetic_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {

template <>
void arithmetic_kernel<Backend::cuda>(Arithmetic operation, DType dtype, const Layout<3>& layout,
                                      std::byte* out, const std::byte* a, const std::byte* b,
                                      StreamView stream) {
  on_arithmetic(operation, [&](auto functor) {
    on_dtype(AllTypes{}, dtype, "arithmetic", [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
                       reinterpret_cast<const T*>(b));
    });
  });
}

}  // namespace tandem::detail
