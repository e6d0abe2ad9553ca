#include "tandem/ops/one_hot.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/labels.h"
#include "tandem/ops/one_hot_kernel.h"

namespace tandem::detail {

template <>
void one_hot_kernel<Backend::cpu>(DType dtype, DType label_dtype, std::int64_t rows, std::int64_t classes,
                                  std::byte* out, const std::byte* labels, StreamView) {
  on_dtype(FloatTypes{}, dtype, "one_hot", [&]<class T>() {
    on_dtype(LabelTypes{}, label_dtype, "one_hot", [&]<class Label>() {
      auto* to = reinterpret_cast<T*>(out);
      std::fill(to, to + rows * classes, convert<T>(0.0f));
      for (std::int64_t row = 0; row < rows; ++row)
        to[row * classes + reinterpret_cast<const Label*>(labels)[row]] = convert<T>(1.0f);
    });
  });
}

}  // namespace tandem::detail

namespace tandem {

Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype) {
  const Device device = common_device("one_hot", {&labels});
  check(labels.dtype() == DType::i32 || labels.dtype() == DType::i64,
        "[one_hot] expected labels of i32 or i64, got {}", name_of(labels.dtype()));
  check(labels.rank() == 1, "[one_hot] expected labels (n), got shape {}", labels.shape().to_string());
  check(classes > 0, "[one_hot] expected at least one class, got {}", classes);
  check(is_floating(dtype), "[one_hot] expected a floating dtype, got {}", name_of(dtype));
  detail::check_labels("one_hot", labels, classes);
  const Tensor dense = labels.contiguous();
  Tensor out = Tensor::empty({labels.numel(), classes}, dtype, device);
  if (out.numel() > 0)
    on_backend(device, "one_hot", [&]<Backend B>() {
      detail::one_hot_kernel<B>(dtype, labels.dtype(), labels.numel(), classes, out.bytes(), dense.bytes(),
                                current_stream(device));
    });
  return out;
}

}  // namespace tandem
