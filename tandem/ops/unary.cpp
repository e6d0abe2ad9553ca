#include "tandem/ops/unary.h"

#include <cmath>

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/unary_kernel.h"
#include "tandem/ops/vector_math.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

struct Exp {
  [[gnu::always_inline]] float operator()(float x) const { return vector_exp(x); }
  double operator()(double x) const { return std::exp(x); }
};
struct Log {
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

}  // namespace

template <>
void unary_kernel<Backend::cpu>(Unary function, DType dtype, const Layout<2>& layout, std::byte* out,
                                const std::byte* x, StreamView) {
  on_unary<Exp, Log, Sqrt>(function, [&](auto functor, auto types) {
    on_dtype(types, dtype, name_of(function), [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  });
}

template <>
void unary_gradient_kernel<Backend::cpu>(Unary function, DType dtype, const Layout<3>& layout, std::byte* out,
                                         const std::byte* g, const std::byte* saved, StreamView) {
  on_unary_gradient(function, [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(function), [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                      reinterpret_cast<const T*>(saved));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor gradient(detail::Unary function, const Tensor& g, const Tensor& saved) {
  Tensor out = Tensor::empty(g.shape(), g.dtype(), g.device());
  const auto layout = detail::make_layout<3>(g.shape(), {out.strides(), g.strides(), saved.strides()});
  on_backend(g.device(), name_of(function), [&]<Backend B>() {
    detail::unary_gradient_kernel<B>(function, g.dtype(), layout, out.bytes(), g.bytes(), saved.bytes(),
                                     current_stream(g.device()));
  });
  return out;
}

Tensor compute(detail::Unary function, const Tensor& x) {
  const Device device = common_device(name_of(function), {&x});
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  const auto layout = detail::make_layout<2>(x.shape(), {out.strides(), x.strides()});
  on_backend(device, name_of(function), [&]<Backend B>() {
    detail::unary_kernel<B>(function, x.dtype(), layout, out.bytes(), x.bytes(), current_stream(device));
  });
  if (wants_grad(x)) {
    const bool from_result = function == detail::Unary::exp || function == detail::Unary::sqrt;
    record(out, name_of(function), {&x},
           [function, saved = from_result ? out.detach() : x.detach()](const Tensor& g) {
             return Gradients{gradient(function, g, saved)};
           });
  }
  return out;
}

}  // namespace

Tensor exp(const Tensor& x) {
  return compute(detail::Unary::exp, x);
}

Tensor log(const Tensor& x) {
  return compute(detail::Unary::log, x);
}

Tensor sqrt(const Tensor& x) {
  return compute(detail::Unary::sqrt, x);
}

Tensor square(const Tensor& x) {
  return compute(detail::Unary::square, x);
}

Tensor absolute(const Tensor& x) {
  return compute(detail::Unary::absolute, x);
}

Tensor sign(const Tensor& x) {
  return compute(detail::Unary::sign, x);
}

}  // namespace tandem
