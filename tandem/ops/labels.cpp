#include "tandem/ops/labels.h"

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"

namespace tandem::detail {

void check_labels(const char* op, const Tensor& labels, std::int64_t classes) {
  if (labels.device().is_cuda()) return;
  on_dtype(LabelTypes{}, labels.dtype(), op, [&]<class Label>() {
    const Tensor dense = labels.contiguous();
    const Label* values = dense.data<Label>();
    for (std::int64_t i = 0; i < dense.numel(); ++i)
      check(values[i] >= 0 && values[i] < classes, "[{}] expected labels from 0 to {}, got {} at position {}",
            op, classes - 1, values[i], i);
  });
}

}  // namespace tandem::detail
