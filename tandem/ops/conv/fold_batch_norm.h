// Folds a batch norm into the convolution before it, for evaluation: together they are one convolution with
// scaled weights and a bias. It is a single pass over the weights, because evaluation repeats it after every
// epoch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// The norm computes (x − mean) / sqrt(variance + epsilon) · weight + bias; the tensors are (channels).
struct BatchNormParameters {
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& mean;
  const Tensor& variance;
  double epsilon;
};

// The parameters of the folded convolution.
struct FoldedConv {
  Tensor weight;  // in the dtype of the images
  Tensor bias;    // f32 (f64 for f64)
};

// `weight` is (out, kernel y, kernel x, channels / groups) as for conv2d(), and the norm has `out` channels;
// all are f32 or all f64. `dtype` is the dtype of the images. No gradients.
FoldedConv fold_batch_norm(const Tensor& weight, const BatchNormParameters& norm, DType dtype);

// Contiguous memory.
struct FoldBatchNormPlan {
  DType from;  // of the inputs
  DType to;    // of new_weight
  std::int64_t filters;
  std::int64_t filter_size;  // weights per filter
  const std::byte* weight;
  const std::byte* norm_weight;
  const std::byte* norm_bias;
  const std::byte* mean;
  const std::byte* variance;
  double epsilon;
  std::byte* new_weight;
  std::byte* new_bias;
};

template <Backend B>
void fold_batch_norm_kernel(const FoldBatchNormPlan& plan, StreamView stream);

// The norm of one filter as an affine function: x · scale + shift.
template <class T>
struct ScaleShift {
  T scale;
  T shift;
};

template <class T>
constexpr ScaleShift<T> scale_shift_of(const FoldBatchNormPlan& plan, std::int64_t filter) {
  const auto at = [filter](const std::byte* values) {
    return static_cast<const T*>(static_cast<const void*>(values))[filter];
  };
  const T scale = at(plan.norm_weight) / std::sqrt(at(plan.variance) + static_cast<T>(plan.epsilon));
  return {scale, at(plan.norm_bias) - at(plan.mean) * scale};
}

}  // namespace tandem::detail
