#include "tandem/nn/loss.h"

#include "tandem/core/check.h"
#include "tandem/ops/mse.h"
#include "tandem/ops/one_hot.h"

namespace tandem {

const char* name_of(LossKind loss) {
  switch (loss) {
    case LossKind::mse:
      return "mse";
    case LossKind::focal:
      return "focal";
    case LossKind::cross_entropy:
      break;
  }
  return "cross-entropy";
}

LossKind parse_loss(std::string_view name) {
  for (const LossKind loss : {LossKind::cross_entropy, LossKind::mse, LossKind::focal})
    if (name == name_of(loss)) return loss;
  fail("[loss] expected cross-entropy, mse or focal, got '{}'", name);
}

Tensor compute_loss(LossKind loss, const Tensor& outputs, const Tensor& labels,
                    const CrossEntropyOptions& options) {
  if (loss != LossKind::mse) return cross_entropy(outputs, labels, options);
  check(options.label_smoothing == 0, "[loss] expected no label smoothing with mse, got {}",
        options.label_smoothing);
  check(!options.class_weights.defined() && options.focal_gamma == 0,
        "[loss] expected neither class weights nor a focal gamma with mse");
  return mse_loss(outputs, one_hot(labels, outputs.size(-1), outputs.dtype()));
}

Tensor CrossEntropyLoss::operator()(const Tensor& logits, const Tensor& labels) const {
  return cross_entropy(logits, labels, {.label_smoothing = label_smoothing, .class_weights = class_weights});
}

Tensor FocalLoss::operator()(const Tensor& logits, const Tensor& labels) const {
  return cross_entropy(logits, labels, {.class_weights = class_weights, .focal_gamma = gamma});
}

Tensor MSELoss::operator()(const Tensor& prediction, const Tensor& target) const {
  return mse_loss(prediction, target);
}

}  // namespace tandem
