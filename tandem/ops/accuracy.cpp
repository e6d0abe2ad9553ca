#include "tandem/ops/accuracy.h"

#include "tandem/core/check.h"
#include "tandem/ops/compare.h"
#include "tandem/ops/labels.h"
#include "tandem/ops/reduce.h"

namespace tandem {

double accuracy(const Tensor& logits, const Tensor& labels) {
  common_device("accuracy", {&logits, &labels});
  on_dtype(detail::LabelTypes{}, labels.dtype(), "accuracy", []<class T>() {});
  check(logits.rank() == 2 && labels.rank() == 1 && logits.size(0) == labels.size(0) && labels.numel() > 0,
        "[accuracy] expected logits (n, classes) and labels (n) with n above 0, got {} and {}",
        logits.shape().to_string(), labels.shape().to_string());
  const Tensor hits = sum(equal(argmax(logits.detach(), 1), labels));
  return static_cast<double>(hits.item<std::int64_t>()) / static_cast<double>(labels.numel());
}

}  // namespace tandem
