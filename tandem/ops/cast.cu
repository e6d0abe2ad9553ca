#include "tandem/ops/cast_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {

template <>
void cast_kernel<Backend::cuda>(DType to, DType from, const Layout<2>& layout, std::byte* out,
                                const std::byte* x, StreamView stream) {
  on_dtype(AllTypes{}, to, "cast", [&]<class To>() {
    on_dtype(AllTypes{}, from, "cast", [&]<class From>() {
      if constexpr (!std::same_as<To, From>)
        elementwise_cuda(Cast<To>{}, layout, stream, reinterpret_cast<To*>(out),
                         reinterpret_cast<const From*>(x));
    });
  });
}

}  // namespace tandem::detail
