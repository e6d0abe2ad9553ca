// A batch norm folded into the convolution before it, for evaluation: what the two do is one convolution of
// other weights and a bias. One pass over the weights, as evaluation may need it after every epoch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// The norm makes (x − mean) / sqrt(variance + epsilon) · weight + bias of x; the tensors are (channels).
struct NormValues {
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& mean;
  const Tensor& variance;
  double epsilon;
};

struct FoldedNorm {
  Tensor weight;  // of the convolution, in the dtype of its images
  Tensor bias;    // f32 (f64 for f64)
};

// `weight` is as conv2d() takes it, (out, kernel y, kernel x, channels / groups), and the norm is of its
// filters; all f32 or all f64. `dtype` is that of the images. No gradients.
FoldedNorm fold_norm(const Tensor& weight, const NormValues& norm, DType dtype);

// The memory of all this, dense; `size` weights make a filter. Inputs are `from`, the new weight is `to`.
struct FoldNormPlan {
  DType from, to;
  std::int64_t filters, size;
  const std::byte *weight, *norm_weight, *norm_bias, *mean, *variance;
  double epsilon;
  std::byte *new_weight, *new_bias;
};

template <Backend B>
void fold_norm_kernel(const FoldNormPlan& plan, StreamView stream);

// x · scale + shift is what the norm makes of one filter's x.
template <class T>
struct NormLine {
  T scale, shift;
};

template <class T>
constexpr NormLine<T> norm_line(const FoldNormPlan& plan, std::int64_t filter) {
  const auto at = [filter](const std::byte* values) {
    return static_cast<const T*>(static_cast<const void*>(values))[filter];
  };
  const T scale = at(plan.norm_weight) / std::sqrt(at(plan.variance) + static_cast<T>(plan.epsilon));
  return {scale, at(plan.norm_bias) - at(plan.mean) * scale};
}

}  // namespace tandem
