#include "tandem/nn/loss.h"

#include "tandem/core/check.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/ops/mse.h"
#include "tandem/ops/one_hot.h"

namespace tandem {

const char* name_of(LossKind loss) {
  return loss == LossKind::cross_entropy ? "cross-entropy" : "mse";
}

LossKind parse_loss(std::string_view name) {
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::mse})
    if (name == name_of(loss)) return loss;
  fail("[loss] expected cross-entropy or mse, got '{}'", name);
}

Tensor compute_loss(LossKind loss, const Tensor& outputs, const Tensor& labels, double label_smoothing) {
  if (loss == LossKind::cross_entropy) return cross_entropy(outputs, labels, label_smoothing);
  check(label_smoothing == 0, "[loss] expected no label smoothing with mse, got {}", label_smoothing);
  return mse_loss(outputs, one_hot(labels, outputs.size(-1), outputs.dtype()));
}

Tensor CrossEntropyLoss::operator()(const Tensor& logits, const Tensor& labels) const {
  return cross_entropy(logits, labels, label_smoothing);
}

Tensor MSELoss::operator()(const Tensor& prediction, const Tensor& target) const {
  return mse_loss(prediction, target);
}

}  // namespace tandem
