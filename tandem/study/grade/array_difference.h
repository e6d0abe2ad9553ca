// What differs between an expected and a computed array, as a sentence and as pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/grade_report.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct ArrayDifference {
  std::string sentence;
  std::vector<GradePicture> pictures;
};

// None when every element of `got` is within `tolerance` times the largest magnitude in `expected`; 0 means
// equal. NaN equals nothing. Both are matrices of the same shape; `expected` may have a wider type.
std::optional<ArrayDifference> difference_of(const Tensor& expected, const Tensor& got, double tolerance);

}  // namespace tandem
