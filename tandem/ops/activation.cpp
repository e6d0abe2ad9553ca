#include "tandem/ops/activation.h"

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/activation_cpu.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {

template <>
void activation_kernel<Backend::cpu>(Activation activation, DType dtype, const Layout<2>& layout,
                                     std::byte* out, const std::byte* x, StreamView) {
  on_activation<Backend::cpu>(activation, [&](auto function, auto) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cpu(function, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x));
    });
  });
}

template <>
void activation_gradient_kernel<Backend::cpu>(Activation activation, DType dtype, const Layout<3>& layout,
                                              std::byte* out, const std::byte* g, const std::byte* kept,
                                              StreamView) {
  on_activation<Backend::cpu>(activation, [&](auto, auto gradient) {
    on_dtype(FloatTypes{}, dtype, name_of(activation), [&]<class T>() {
      elementwise_cpu(gradient, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g),
                      reinterpret_cast<const T*>(kept));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor gradient(Activation activation, const Tensor& g, const Tensor& kept) {
  Tensor out = Tensor::empty(g.shape(), g.dtype(), g.device());
  const auto layout = detail::make_layout<3>(g.shape(), {out.strides(), g.strides(), kept.strides()});
  on_backend(g.device(), name_of(activation), [&]<Backend B>() {
    detail::activation_gradient_kernel<B>(activation, g.dtype(), layout, out.bytes(), g.bytes(), kept.bytes(),
                                          current_stream(g.device()));
  });
  return out;
}

bool gradient_needs_input(Activation activation) {
  return detail::on_activation<Backend::cpu>(activation, [](auto, auto of) { return of.needs_input; });
}

}  // namespace

const Registry<ActivationRow>& activations() {
  static const Registry<ActivationRow> rows(
      "activation",
      {
          {"sigmoid", "1 / (1 + exp(-x))", Activation::sigmoid, sigmoid},
          {"tanh", "hyperbolic tangent", Activation::tanh, tanh},
          {"relu", "max(x, 0)", Activation::relu, relu},
          {"gelu", "x times the normal distribution function", Activation::gelu, gelu},
          {"silu", "x times sigmoid(x)", Activation::silu, silu},
          {"hardswish", "x times hardsigmoid(x)", Activation::hardswish, hardswish},
          {"hardsigmoid", "x / 6 + 1/2, limited to 0 and 1", Activation::hardsigmoid, hardsigmoid},
      });
  return rows;
}

const char* name_of(Activation activation) {
  return activations().rows()[static_cast<std::size_t>(activation)].name.c_str();
}

Activation parse_activation(std::string_view name) {
  return activations().get(name).activation;
}

Tensor activate(Activation activation, const Tensor& x) {
  const Device device = common_device(name_of(activation), {&x});
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  const auto layout = detail::make_layout<2>(x.shape(), {out.strides(), x.strides()});
  on_backend(device, name_of(activation), [&]<Backend B>() {
    detail::activation_kernel<B>(activation, x.dtype(), layout, out.bytes(), x.bytes(),
                                 current_stream(device));
  });
  if (wants_grad(x))
    record(out, name_of(activation), {&x},
           [activation, kept = gradient_needs_input(activation) ? x.detach() : out.detach()](
               const Tensor& g) { return Gradients{gradient(activation, g, kept)}; });
  return out;
}

Tensor sigmoid(const Tensor& x) {
  return activate(Activation::sigmoid, x);
}

Tensor tanh(const Tensor& x) {
  return activate(Activation::tanh, x);
}

Tensor relu(const Tensor& x) {
  return activate(Activation::relu, x);
}

Tensor gelu(const Tensor& x) {
  return activate(Activation::gelu, x);
}

Tensor silu(const Tensor& x) {
  return activate(Activation::silu, x);
}

Tensor hardswish(const Tensor& x) {
  return activate(Activation::hardswish, x);
}

Tensor hardsigmoid(const Tensor& x) {
  return activate(Activation::hardsigmoid, x);
}

}  // namespace tandem
