#include "tandem/ops/activation_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {

template <>
struct Sigmoid<Backend::cuda> {
  __device__ float operator()(float x) const {
    const float e = ::expf(-::fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
  }
  __device__ double operator()(double x) const {
    const double e = ::exp(-::fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
  }
};
template <>
struct Tanh<Backend::cuda> {
  __device__ float operator()(float x) const { return ::tanhf(x); }
  __device__ double operator()(double x) const { return ::tanh(x); }
};

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
