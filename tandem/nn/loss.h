// The losses a classifier is trained with.
#pragma once

#include <string_view>

#include "tandem/tensor/tensor.h"

namespace tandem {

enum class LossKind { cross_entropy, mse };  // mse is on sigmoid outputs and one-hot targets

const char* name_of(LossKind loss);  // "cross-entropy", "mse"
LossKind parse_loss(std::string_view name);

// The mean loss of a batch: outputs (n, classes) are logits for cross-entropy, the sigmoid's for mse.
Tensor compute_loss(LossKind loss, const Tensor& outputs, const Tensor& labels, double label_smoothing = 0);

}  // namespace tandem
