#include "tandem/ops/activation.cuh"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {

template <>
void activation_kernel<Backend::cuda>(Activation activation, DType dtype, const Layout<2>& layout,
                                      std::byte* out, const std::byte* x, StreamView stream) {
  on_activation<Backend::cuda>(activation, [&](auto function, auto) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cuda(function, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  });
}

template <>
void activation_gradient_kernel<Backend::cuda>(Activation activation, DType dtype, const Layout<3>& layout,
                                               std::byte* out, const std::byte* g, const std::byte* kept,
                                               StreamView stream) {
  on_activation<Backend::cuda>(activation, [&](auto, auto gradient) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cuda(gradient, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                       reinterpret_cast<const T*>(kept));
    });
  });
}

}  // namespace tandem::detail
