// Convolution, batch norm, residual sum and activation: the building block of convolutional networks. When
// neither gradients nor batch statistics are needed, the norm is folded into the convolution's weights once,
// and the whole block is one operation.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/nn/batch_norm.h"
#include "tandem/nn/conv2d.h"

namespace tandem {

namespace detail {
struct PrepackedConv2d;
}

/// Momentum and epsilon of the batch norm.
struct ConvNormOptions {
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Not a Module itself: the module that owns it registers conv() and norm() under their own names.
class ConvNorm {
 public:
  /// options.bias is ignored: the norm has the bias.
  ConvNorm(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options,
           const ConvNormOptions& norm = {});
  ~ConvNorm();
  ConvNorm(const ConvNorm&) = delete;
  ConvNorm& operator=(const ConvNorm&) = delete;

  Conv2d& conv() { return conv_; }
  BatchNorm& norm() { return norm_; }

  /// norm(conv(x)) + residual, then the activation. The residual may be an undefined tensor; with one, the
  /// activation is none or ReLU.
  Tensor forward(const Tensor& x, FusedActivation activation, const Tensor& residual = {});

 private:
  friend class ResNet;
  friend class ResNetBlock;
  struct Folded;

  // The convolution that forward(x) computes, with the norm folded in; null where it computes both. Valid
  // until this block changes.
  const detail::PrepackedConv2d* folded(const Tensor& x);

  Conv2d conv_;
  BatchNorm norm_;
  std::unique_ptr<Folded> folded_;  // cached for inference, with the dtype and revisions it was made for
};

}  // namespace tandem
