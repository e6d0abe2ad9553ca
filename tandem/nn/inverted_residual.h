// The block of mobile networks (Sandler et al. 2018): a 1×1 convolution that expands the channels, a
// depthwise one, squeeze-and-excitation, and a 1×1 convolution that projects to fewer channels. Names as
// torchvision's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/backbone_parts.h"
#include "tandem/nn/conv_norm.h"
#include "tandem/nn/stochastic_depth.h"
#include "tandem/ops/activation.h"

namespace tandem::detail {

// Convolution "0", batch norm "1" and an activation.
class ConvNormActivation : public Module {
 public:
  ConvNormActivation(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& conv,
                     const ConvNormOptions& norm, FusedActivation activation);

  Tensor forward(const Tensor& x) override { return layer_.forward(x, activation_); }
  // Without the activation.
  Tensor forward(const Tensor& x, const Tensor& residual) {
    return layer_.forward(x, FusedActivation::none, residual);
  }
  void freeze_statistics() { layer_.norm().freeze_statistics(); }

 private:
  ConvNorm layer_;
  FusedActivation activation_;
};

struct SqueezeExcitationOptions {
  std::int64_t channels;
  std::int64_t squeezed;
  Activation activation;
  Activation gate;
};

// The convolutions "fc1" and "fc2" of 1×1 are linear layers: the means of an image are one pixel.
class SqueezeExcitation : public Module {
 public:
  SqueezeExcitation(const SqueezeExcitationOptions& options, StreamCounter& streams);

  Tensor forward(const Tensor& x) override;

 private:
  SqueezeExcitationOptions options_;
  Conv2d fc1_, fc2_;
};

struct InvertedResidualOptions {
  std::int64_t in;
  std::int64_t expanded;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t squeezed;  // channels of squeeze-and-excitation; 0: none
  FusedActivation activation;
  Activation squeeze_activation;
  Activation gate;
  ConvNormOptions norm = {};
  double drop_probability = 0;  // of stochastic depth
};

class InvertedResidual : public Module {
 public:
  // `layer` is the number of its stochastic depth.
  InvertedResidual(const InvertedResidualOptions& options, std::uint64_t seed, std::uint32_t layer,
                   StreamCounter& streams);

  Tensor forward(const Tensor& x) override;
  void freeze_statistics();

 private:
  ConvNormActivation& add(std::unique_ptr<ConvNormActivation> layer);

  std::vector<std::unique_ptr<ConvNormActivation>> layers_;  // expansion, depthwise, projection
  std::unique_ptr<SqueezeExcitation> squeeze_;               // before the projection
  std::unique_ptr<StochasticDepth> stochastic_depth_;
  Container block_;
  std::size_t children_ = 0;  // of block_
  bool has_shortcut_;
};

}  // namespace tandem::detail
