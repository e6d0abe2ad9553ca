#include "tandem/ops/cast.h"

#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/cast_kernel.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {

template <>
void cast_kernel<Backend::cpu>(DType to, DType from, const Layout<2>& layout, std::byte* out,
                               const std::byte* x, StreamView) {
  on_dtype(AllTypes{}, to, "cast", [&]<class To>() {
    on_dtype(AllTypes{}, from, "cast", [&]<class From>() {
      if constexpr (!std::same_as<To, From>)
        elementwise_cpu(Cast<To>{}, layout, reinterpret_cast<To*>(out), reinterpret_cast<const From*>(x));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {

Tensor cast(const Tensor& x, DType dtype) {
  const Device device = common_device("cast", {&x});
  if (x.dtype() == dtype) return x;
  Tensor out = Tensor::empty(x.shape(), dtype, device);
  const auto layout = detail::make_layout<2>(x.shape(), {out.strides(), x.strides()});
  on_backend(device, "cast", [&]<Backend B>() {
    detail::cast_kernel<B>(dtype, x.dtype(), layout, out.bytes(), x.bytes(), current_stream(device));
  });
  if (wants_grad(x) && is_floating(dtype))
    record(out, "cast", {&x}, [from = x.dtype()](const Tensor& g) { return Gradients{cast(g, from)}; });
  return out;
}

}  // namespace tandem
