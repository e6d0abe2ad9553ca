// Softmax cross-entropy, fused with its gradient: the forward pass also computes (p − target) / n when a
// gradient is needed, so backward() only scales it.
#pragma once

#include "tandem/tensor/tensor.h"

namespace tandem {

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< from 0 to 1
  /// (classes) of a floating dtype: the weight of the rows of each class. None: 1 each.
  Tensor class_weights = {};
  /// Of the focal loss (Lin et al. 2017), 0 or more: multiplies the loss of a row by (1 − p)^γ, where p is
  /// the probability of its label. Not with label smoothing.
  double focal_gamma = 0;
  /// With class weights, of shape []: what the sum over the rows is divided by. None: the sum of the weights
  /// of their labels, so that the loss is a weighted mean.
  Tensor total_weight = {};
};

/// The mean cross-entropy over the batch, of shape []. logits (n, classes) f32, f64 or bf16 (computed in
/// f32); labels (n) i32 or i64. With label smoothing s the target is s / classes everywhere plus 1 − s at the
/// label. Throws Error for an empty batch. A label outside [0, classes) throws Error on the CPU; on CUDA,
/// where a check would have to synchronize, it makes the loss and its row of the gradient NaN.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing = 0);

/// The same with class weights w, as torch.nn.CrossEntropyLoss: a row's target is smoothed, then multiplied
/// by w, and the mean is weighted by the weights of the labels. For targets that are mixtures of two labels,
/// add the losses of both with total_weight = n. A total weight of 0 gives a loss of 0. Throws Error also for
/// options out of range. A batch that is cut into shards requires total_weight.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options);

}  // namespace tandem
