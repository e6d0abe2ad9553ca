#include "tandem/ops/activation.h"

#include <cmath>

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/activation_kernel.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/vector_math.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

struct Sigmoid {
  [[gnu::always_inline]] float operator()(float x) const { return vector_sigmoid(x); }
  double operator()(double x) const {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1) / (1 + e);
  }
};
struct Tanh {
  [[gnu::always_inline]] float operator()(float x) const { return vector_tanh(x); }
  double operator()(double x) const { return std::tanh(x); }
};

}  // namespace

template <>
void activation_kernel<Backend::cpu>(Activation activation, DType dtype, const Layout<2>& layout,
                                     std::byte* out, const std::byte* x, StreamView) {
  const auto run = [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
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
void activation_gradient_kernel<Backend::cpu>(Activation activation, DType dtype, const Layout<3>& layout,
                                              std::byte* out, const std::byte* g, const std::byte* y,
                                              StreamView) {
  on_activation_gradient(activation, [&](auto functor) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                      reinterpret_cast<const T*>(y));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor gradient(Activation activation, const Tensor& g, const Tensor& y) {
  Tensor out = Tensor::empty(g.shape(), g.dtype(), g.device());
  const auto layout = detail::make_layout<3>(g.shape(), {out.strides(), g.strides(), y.strides()});
  on_backend(g.device(), name_of(activation), [&]<Backend B>() {
    detail::activation_gradient_kernel<B>(activation, g.dtype(), layout, out.bytes(), g.bytes(), y.bytes(),
                                          current_stream(g.device()));
  });
  return out;
}

Tensor compute(Activation activation, const Tensor& x) {
  const Device device = common_device(name_of(activation), {&x});
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  const auto layout = detail::make_layout<2>(x.shape(), {out.strides(), x.strides()});
  on_backend(device, name_of(activation), [&]<Backend B>() {
    detail::activation_kernel<B>(activation, x.dtype(), layout, out.bytes(), x.bytes(),
                                 current_stream(device));
  });
  if (wants_grad(x))
    record(out, name_of(activation), {&x},
           [activation, y = out.detach()](const Tensor& g) { return Gradients{gradient(activation, g, y)}; });
  return out;
}

}  // namespace

Tensor sigmoid(const Tensor& x) {
  return compute(Activation::sigmoid, x);
}

Tensor tanh(const Tensor& x) {
  return compute(Activation::tanh, x);
}

Tensor relu(const Tensor& x) {
  return compute(Activation::relu, x);
}

}  // namespace tandem
