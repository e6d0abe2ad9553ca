// A convolution with its batch norm, and the residual sum and ReLU that follow: the brick convolutional
// networks are made of. Where nothing is learnt and no statistics move, the norm is folded into the
// convolution's weights, once, and all of it is one operation.
#pragma once

#include <optional>

#include "tandem/nn/batch_norm.h"
#include "tandem/nn/conv2d.h"
#include "tandem/ops/fixed_conv2d.h"

namespace tandem {

class ConvNorm {
 public:
  ConvNorm(std::int64_t in, std::int64_t out, Conv2dLayerOptions options);

  // Both belong to whatever module registers them.
  Conv2d& conv() { return conv_; }
  BatchNorm& norm() { return norm_; }

  Tensor forward(const Tensor& x, bool relu, const Tensor& residual = {});

 private:
  bool is_fixed(const Tensor& x, const Tensor& residual) const;

  Conv2d conv_;
  BatchNorm norm_;
  struct Folded {
    FixedConv2d conv;
    DType dtype;
    std::uint64_t conv_revision, norm_revision;
  };
  std::optional<Folded> folded_;
};

}  // namespace tandem
