#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/pow_kernel.h"

namespace tandem::detail {
namespace {

struct Power {
  double exponent;
  __device__ float operator()(float x) const { return ::powf(x, static_cast<float>(exponent)); }
  __device__ double operator()(double x) const { return ::pow(x, exponent); }
};

}  // namespace

template <>
void pow_kernel<Backend::cuda>(double exponent, DType dtype, const Layout<2>& layout, std::byte* out,
                               const std::byte* x, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "pow", [&]<class T>() {
    elementwise_cuda(Power{exponent}, layout, stream, reinterpret_cast<T*>(out),
                     reinterpret_cast<const T*>(x));
  });
}

}  // namespace tandem::detail
