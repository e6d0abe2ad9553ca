#include "tandem/ops/activation_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

struct Sigmoid {
  __device__ float operator()(float x) const {
    const float e = ::expf(-::fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
  }
  __device__ double operator()(double x) const {
    const double e = ::exp(-::fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
  }
};
struct Tanh {
  __device__ float operator()(float x) const { return ::tanhf(x); }
  __device__ double operator()(double x) const { return ::tanh(x); }
};

}  // namespace

template <>
void activation_kernel<Backend::cuda>(Activation activation, DType dtype, const Layout<2>& layout,
                                      std::byte* out, const std::byte* x, StreamView stream) {
  const auto run = [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  };
  switch (activation) {
    case Activation::sigmoid:
      return run(Sigmoid{});
    case Activation::tanh:
      return run(Tanh{});
    case Activation::relu:
      return run(Relu{});
  }
}

template <>
void activation_gradient_kernel<Backend::cuda>(Activation activation, DType dtype, const Layout<3>& layout,
                                               std::byte* out, const std::byte* g, const std::byte* y,
                                               StreamView stream) {
  on_activation_gradient(activation, [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                       reinterpret_cast<const T*>(y));
    });
  });
}

}  // namespace tandem::detail
