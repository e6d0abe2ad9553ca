#include "tandem/ops/pow.h"

#include <cmath>

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/pow_kernel.h"
#include "tandem/ops/unary.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

struct Power {
  double exponent;
  float operator()(float x) const { return std::pow(x, static_cast<float>(exponent)); }
  double operator()(double x) const { return std::pow(x, exponent); }
};

}  // namespace

template <>
void pow_kernel<Backend::cpu>(double exponent, DType dtype, const Layout<2>& layout, std::byte* out,
                              const std::byte* x, StreamView) {
  on_dtype(FloatTypes{}, dtype, "pow", [&]<class T>() {
    elementwise_cpu(Power{exponent}, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor compute(const Tensor& x, double exponent) {
  const Device device = common_device("pow", {&x});
  on_dtype(FloatTypes{}, x.dtype(), "pow", []<class T>() {});
  if (exponent == 2) return square(x.detach());  // the common case, without transcendental functions
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  const auto layout = detail::make_layout<2>(x.shape(), {out.strides(), x.strides()});
  on_backend(device, "pow", [&]<Backend B>() {
    detail::pow_kernel<B>(exponent, x.dtype(), layout, out.bytes(), x.bytes(), current_stream(device));
  });
  return out;
}

}  // namespace

Tensor pow(const Tensor& x, double exponent) {
  Tensor out = compute(x, exponent);
  if (wants_grad(x)) {
    record(out, "pow", {&x}, [x = x.detach(), exponent](const Tensor& g) {
      if (exponent == 0) return Gradients{zeros_like(x)};  // 0 · x⁻¹ would be NaN at 0
      return Gradients{multiply(g, multiply(compute(x, exponent - 1), exponent))};
    });
    trace_option("exponent", exponent);
  }
  return out;
}

}  // namespace tandem
