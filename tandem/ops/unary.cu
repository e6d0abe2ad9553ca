#include "tandem/ops/unary_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

struct Exp {
  __device__ float operator()(float x) const { return ::expf(x); }
  __device__ double operator()(double x) const { return ::exp(x); }
};
struct Log {
  __device__ float operator()(float x) const { return ::logf(x); }
  __device__ double operator()(double x) const { return ::log(x); }
};
struct Sqrt {
  __device__ float operator()(float x) const { return ::sqrtf(x); }
  __device__ double operator()(double x) const { return ::sqrt(x); }
};

}  // namespace

template <>
void unary_kernel<Backend::cuda>(Unary function, DType dtype, const Layout<2>& layout, std::byte* out,
                                 const std::byte* x, StreamView stream) {
  on_unary<Exp, Log, Sqrt>(function, [&](auto functor, auto types) {
    on_dtype(types, dtype, name_of(function), [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  });
}

template <>
void unary_gradient_kernel<Backend::cuda>(Unary function, DType dtype, const Layout<3>& layout,
                                          std::byte* out, const std::byte* g, const std::byte* saved,
                                          StreamView stream) {
  on_unary_gradient(function, [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(function), [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                       reinterpret_cast<const T*>(saved));
    });
  });
}

}  // namespace tandem::detail
