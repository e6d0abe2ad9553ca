#include "tandem/ops/fill.h"

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/fill_kernel.h"
#include "tandem/tensor/copy.h"

namespace tandem::detail {

template <>
void fill_kernel<Backend::cpu>(DType dtype, std::byte* out, std::int64_t count, double value, StreamView) {
  on_dtype(AllTypes{}, dtype, "fill", [&]<class T>() {
    auto* values = reinterpret_cast<T*>(out);
    parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::fill(values + begin, values + end, convert<T>(value));
    });
  });
}

}  // namespace tandem::detail

namespace tandem {

Tensor empty(const Shape& shape, DType dtype, Device device) {
  return Tensor::empty(shape, dtype, device);
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  on_dtype(AllTypes{}, dtype, "full", [&]<class T>() {
    if constexpr (std::integral<T>)  // 2^63 itself does not fit i64, hence the strict upper bound
      check(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                value < static_cast<double>(std::numeric_limits<T>::max()) + 1.0,
            "[full] expected a value that fits {}, got {}", name_of(dtype), value);
  });
  Tensor out = Tensor::empty(shape, dtype, device);
  if (out.numel() > 0)
    on_backend(device, "full", [&]<Backend B>() {
      detail::fill_kernel<B>(dtype, out.bytes(), out.numel(), value, current_stream(device));
    });
  return out;
}

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  Tensor out = Tensor::empty(shape, dtype, device);
  clear(out);
  return out;
}

Tensor ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1, dtype, device);
}

Tensor empty(const Shape& shape, Device device) {
  return empty(shape, DType::f32, device);
}

Tensor full(const Shape& shape, double value, Device device) {
  return full(shape, value, DType::f32, device);
}

Tensor zeros(const Shape& shape, Device device) {
  return zeros(shape, DType::f32, device);
}

Tensor ones(const Shape& shape, Device device) {
  return ones(shape, DType::f32, device);
}

Tensor zeros_like(const Tensor& x) {
  return zeros(x.shape(), x.dtype(), common_device("zeros_like", {&x}));
}

Tensor ones_like(const Tensor& x) {
  return ones(x.shape(), x.dtype(), common_device("ones_like", {&x}));
}

}  // namespace tandem
