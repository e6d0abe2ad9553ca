// Loss functions as objects, and the losses of classifiers, selected at run time.
#pragma once

#include <functional>
#include <string_view>

#include "tandem/ops/cross_entropy.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// cross_entropy and focal take logits. mse compares sigmoid outputs with one-hot targets.
enum class LossKind { cross_entropy, mse, focal };

/// "cross-entropy", "mse" or "focal".
const char* name_of(LossKind loss);
/// The inverse of name_of(); throws Error for other names.
LossKind parse_loss(std::string_view name);

/// A loss of your own: outputs (n, classes) and labels (n) in i64 → the mean over the batch, a scalar.
using LossFunction = std::function<Tensor(const Tensor& outputs, const Tensor& labels)>;

/// The mean loss of a batch. outputs (n, classes) are logits for cross_entropy and focal, sigmoid outputs for
/// mse; labels (n) are class indices. focal is the cross-entropy unless the options have a focal gamma.
/// Throws Error for options with mse.
Tensor compute_loss(LossKind loss, const Tensor& outputs, const Tensor& labels,
                    const CrossEntropyOptions& options = {});

/// cross_entropy() as an object: CrossEntropyLoss loss{.label_smoothing = 0.1}; loss(net(images), labels).
struct CrossEntropyLoss {
  double label_smoothing = 0;
  Tensor class_weights = {};  ///< (classes); none: 1 each
  Tensor operator()(const Tensor& logits, const Tensor& labels) const;
};

/// The focal loss (Lin et al. 2017) of a softmax: the mean of (1 − p)^gamma · cross-entropy, where p is the
/// probability of the label. The mean is weighted by the class weights of the labels.
struct FocalLoss {
  double gamma = 2;
  Tensor class_weights = {};  ///< (classes); none: 1 each
  Tensor operator()(const Tensor& logits, const Tensor& labels) const;
};

/// mse_loss() as an object.
struct MSELoss {
  Tensor operator()(const Tensor& prediction, const Tensor& target) const;
};

}  // namespace tandem
