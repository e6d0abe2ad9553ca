#include "tandem/ops/compare.h"

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/compare_kernel.h"
#include "tandem/ops/elementwise.h"

namespace tandem::detail {

template <>
void compare_kernel<Backend::cpu>(Comparison comparison, DType dtype, const Layout<3>& layout, std::byte* out,
                                  const std::byte* a, const std::byte* b, StreamView) {
  on_comparison(comparison, [&](auto functor) {
    on_dtype(AllTypes{}, dtype, "compare", [&]<class T>() {
      elementwise_cpu(functor, layout, reinterpret_cast<std::uint8_t*>(out), reinterpret_cast<const T*>(a),
                      reinterpret_cast<const T*>(b));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

enum class Order { given, swapped };

Tensor compute(detail::Comparison comparison, const char* name, const Tensor& a, const Tensor& b,
               Order order = Order::given) {
  const Device device = common_device(name, {&a, &b});
  if (a.dtype() != b.dtype() && !is_floating(a.dtype()) && !is_floating(b.dtype()))
    return compute(comparison, name, cast(a, DType::i64), cast(b, DType::i64), order);
  const DType dtype = common_dtype(name, {&a, &b});
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), name);
  const Tensor left = (order == Order::given ? a : b).broadcast_view(shape);
  const Tensor right = (order == Order::given ? b : a).broadcast_view(shape);
  Tensor out = Tensor::empty(shape, DType::u8, device);
  const auto layout = detail::make_layout<3>(shape, {out.strides(), left.strides(), right.strides()});
  on_backend(device, name, [&]<Backend B>() {
    detail::compare_kernel<B>(comparison, dtype, layout, out.bytes(), left.bytes(), right.bytes(),
                              current_stream(device));
  });
  return out;
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::equal, "equal", a, b);
}

Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::not_equal, "not_equal", a, b);
}

Tensor less(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::less, "less", a, b);
}

Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::less_equal, "less_equal", a, b);
}

Tensor greater(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::less, "greater", a, b, Order::swapped);
}

Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compute(detail::Comparison::less_equal, "greater_equal", a, b, Order::swapped);
}

}  // namespace tandem
