// Loss functions as objects, and the losses of classifiers, selected at run time.
#pragma once

#include <functional>
#include <string_view>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// mse compares sigmoid outputs with one-hot targets.
enum class LossKind { cross_entropy, mse };

/// "cross-entropy" or "mse".
const char* name_of(LossKind loss);
/// The inverse of name_of(); throws Error for other names.
LossKind parse_loss(std::string_view name);

/// A loss of your own: outputs (n, classes) and labels (n) in i64 → the mean over the batch, a scalar.
using LossFunction = std::function<Tensor(const Tensor& outputs, const Tensor& labels)>;

/// The mean loss of a batch. outputs (n, classes) are logits for cross_entropy and sigmoid outputs for mse;
/// labels (n) are class indices. Throws Error for label smoothing with mse.
Tensor compute_loss(LossKind loss, const Tensor& outputs, const Tensor& labels, double label_smoothing = 0);

/// cross_entropy() as an object: CrossEntropyLoss loss{.label_smoothing = 0.1}; loss(net(images), labels).
struct CrossEntropyLoss {
  double label_smoothing = 0;
  Tensor operator()(const Tensor& logits, const Tensor& labels) const;
};

/// mse_loss() as an object.
struct MSELoss {
  Tensor operator()(const Tensor& prediction, const Tensor& target) const;
};

}  // namespace tandem
