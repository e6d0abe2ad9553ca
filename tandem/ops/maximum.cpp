#include "tandem/ops/maximum.h"

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/maximum_kernel.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/ops/version_kernel.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {

template <>
void maximum_kernel<Version::parallel>(DType dtype, const Layout<3>& layout, std::int64_t, std::byte* out,
                                       const std::byte* a, const std::byte* b, StreamView) {
  on_dtype(AllTypes{}, dtype, "maximum", [&]<class T>() {
    elementwise_cpu(Maximum{}, layout, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
                    reinterpret_cast<const T*>(b));
  });
}

template <>
void maximum_gradient_kernel<Backend::cpu>(DType dtype, const Layout<4>& layout, std::byte* out,
                                           const std::byte* gradient, const std::byte* x,
                                           const std::byte* other, StreamView) {
  on_dtype(FloatTypes{}, dtype, "maximum", [&]<class T>() {
    elementwise_cpu(MaximumGradient{}, layout, reinterpret_cast<T*>(out),
                    reinterpret_cast<const T*>(gradient), reinterpret_cast<const T*>(x),
                    reinterpret_cast<const T*>(other));
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor gradient_of(const Tensor& gradient, const Tensor& x, const Tensor& other) {
  const Shape& shape = gradient.shape();
  Tensor out = Tensor::empty(shape, gradient.dtype(), gradient.device());
  const auto layout =
      detail::make_layout<4>(shape, {out.strides(), gradient.strides(), x.broadcast_view(shape).strides(),
                                     other.broadcast_view(shape).strides()});
  on_backend(gradient.device(), "maximum", [&]<Backend B>() {
    detail::maximum_gradient_kernel<B>(gradient.dtype(), layout, out.bytes(), gradient.bytes(), x.bytes(),
                                       other.bytes(), current_stream(gradient.device()));
  });
  return detail::broadcast_gradient(out, x.shape());
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b, Version version) {
  const Device device = common_device("maximum", {&a, &b});
  const DType dtype = common_dtype("maximum", {&a, &b});
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "maximum");
  Tensor out = Tensor::empty(shape, dtype, device);
  Tensor wide_a = a.detach().broadcast_view(shape), wide_b = b.detach().broadcast_view(shape);
  const bool needs_dense = version == Version::reference || version == Version::cuda_simple;
  if (needs_dense) {
    wide_a = wide_a.contiguous();
    wide_b = wide_b.contiguous();
  }
  const auto layout = detail::make_layout<3>(shape, {out.strides(), wide_a.strides(), wide_b.strides()});
  detail::on_version(version, device, "maximum", [&]<Version V>() {
    if (out.numel() > 0)
      detail::maximum_kernel<V>(dtype, layout, shape.rank() > 0 ? shape.back() : 1, out.bytes(),
                                wide_a.bytes(), wide_b.bytes(), current_stream(device));
  });
  return out;
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  Tensor out = maximum(a, b, tuned_version(a.device()));
  if (wants_grad(a) || wants_grad(b))
    record(out, "maximum", {&a, &b},
           [a = a.detach(), b = b.detach(), need_a = wants_grad(a), need_b = wants_grad(b)](const Tensor& g) {
             return Gradients{need_a ? gradient_of(g, a, b) : Tensor(),
                              need_b ? gradient_of(g, b, a) : Tensor()};
           });
  return out;
}

}  // namespace tandem
