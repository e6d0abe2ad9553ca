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
  const auto run = [&](auto functor, auto types) {
    on_dtype(types, dtype, name_of(function), [&]<class T>() {
      elementwise_cuda(functor, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  };
  switch (function) {
    case Unary::exp:
      return run(Exp{}, FloatTypes{});
    case Unary::log:
      return run(Log{}, FloatTypes{});
    case Unary::sqrt:
      return run(Sqrt{}, FloatTypes{});
    case Unary::square:
      return run(Square{}, AllTypes{});
    case Unary::absolute:
      return run(Absolute{}, AllTypes{});
    case Unary::sign:
      return run(Sign{}, AllTypes{});
  }
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
