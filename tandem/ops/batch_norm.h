// Batch normalisation over the last axis, with the residual sum and the ReLU that follow it in residual
// networks in the same pass: y = relu((x − mean) / sqrt(variance + ε) · weight + bias + residual).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct BatchNormOptions {
  bool training = true;  // mean and variance of this batch, and the running ones move; else the running ones
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool relu = false;
  std::int64_t batch_rows =
      0;  // rows that are a batch by themselves, the last of what is left; 0: all are one
};

// x (…, channels) of at least two axes; weight, bias, running_mean, running_variance (channels) in x's dtype,
// f32 for bf16; residual of x's shape and dtype, or an empty handle. As PyTorch's: the batch's own variance
// is the biased one, the running one is moved towards the unbiased. Training on one value a channel is an
// Error. `batches`, i64 of one element, is counted up in training; it may be an empty handle. Rows are the
// values of a channel. Batches side by side, which matter in training only, come to the same as one after the
// other, but have no gradients.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, const BatchNormOptions& options,
                  const Tensor& residual = {}, const Tensor& batches = {});

struct BatchNormPlan {
  std::int64_t rows = 0, channels = 0;
  DType dtype = DType::f32;  // of x, y, residual and their gradients
  BatchNormOptions options = {};

  // In training.
  constexpr std::int64_t batch_rows() const { return options.batch_rows > 0 ? options.batch_rows : rows; }
  constexpr std::int64_t batches() const {
    return options.training ? (rows + batch_rows() - 1) / batch_rows() : 1;
  }
};

// mean and inverse_deviation: what was used, for the gradient, a row of channels for each batch; written in
// training and otherwise.
struct BatchNormForward {
  std::byte* y;
  const std::byte *x, *residual, *weight, *bias;  // residual may be null
  std::byte *running_mean, *running_variance;
  std::byte *mean, *inverse_deviation;
  std::int64_t* batches;  // may be null
};

template <Backend B>
void batch_norm_kernel(const BatchNormPlan& plan, const BatchNormForward& of, StreamView stream);

struct BatchNormBackward {
  std::byte *dx, *dresidual, *dweight, *dbias;  // each may be null
  const std::byte *dy, *x, *y;  // y may be null without a ReLU; what nothing needs is null too
  const std::byte *weight, *mean, *inverse_deviation;
  const std::byte* bias;  // given with a ReLU and no residual: the sign of y follows from x then
};

template <Backend B>
void batch_norm_gradient_kernel(const BatchNormPlan& plan, const BatchNormBackward& of, StreamView stream);

}  // namespace tandem
