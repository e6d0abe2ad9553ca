// Class labels as operations read them: i32 or i64 values in [0, classes).
#pragma once

#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/on_dtype.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

using LabelTypes = TypeList<std::int32_t, std::int64_t>;

// Throws Error unless every label is in [0, classes). CUDA labels are not checked: that would synchronize.
void check_labels(const char* op, const Tensor& labels, std::int64_t classes);

}  // namespace tandem::detail
