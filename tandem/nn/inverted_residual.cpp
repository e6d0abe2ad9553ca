#include "tandem/nn/inverted_residual.h"

#include <string>
#include <utility>

#include "tandem/ops/conv/image_scale.h"
#include "tandem/ops/linear.h"

namespace tandem::detail {
namespace {

// The weight (out, 1, 1, in) as that of a linear layer.
Tensor as_matrix(const Tensor& weight) {
  return weight.reshape({weight.size(0), weight.size(3)});
}

Conv2dLayerOptions with_bias(const RandomOptions& random) {
  return {.kernel = {1, 1}, .random = random};
}

Conv2dLayerOptions depthwise(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                             const RandomOptions& random) {
  Conv2dLayerOptions options = conv_options(kernel, stride, random);
  options.groups = channels;
  return options;
}

}  // namespace

ConvNormActivation::ConvNormActivation(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& conv,
                                       const ConvNormOptions& norm, FusedActivation activation)
    : layer_(in, out, conv, norm), activation_(activation) {
  add_child("0", layer_.conv());
  add_child("1", layer_.norm());
}

SqueezeExcitation::SqueezeExcitation(const SqueezeExcitationOptions& options, StreamCounter& streams)
    : options_(options),
      fc1_(options.channels, options.squeezed, with_bias(streams.next())),
      fc2_(options.squeezed, options.channels, with_bias(streams.next())) {
  add_child("fc1", fc1_);
  add_child("fc2", fc2_);
}

Tensor SqueezeExcitation::forward(const Tensor& x) {
  return squeeze_excite(x, [&](const Tensor& means) {
    const Tensor squeezed =
        activate(options_.activation, linear(means, as_matrix(fc1_.weight()), fc1_.bias()));
    return activate(options_.gate, linear(squeezed, as_matrix(fc2_.weight()), fc2_.bias()));
  });
}

InvertedResidual::InvertedResidual(const InvertedResidualOptions& o, std::uint64_t seed, std::uint32_t layer,
                                   StreamCounter& streams)
    : has_shortcut_(o.stride == 1 && o.in == o.out) {
  if (o.expanded != o.in)
    add(std::make_unique<ConvNormActivation>(o.in, o.expanded, conv_options(1, 1, streams.next()), o.norm,
                                             o.activation));
  add(std::make_unique<ConvNormActivation>(o.expanded, o.expanded,
                                           depthwise(o.expanded, o.kernel, o.stride, streams.next()), o.norm,
                                           o.activation));
  if (o.squeezed > 0) {
    squeeze_ = std::make_unique<SqueezeExcitation>(
        SqueezeExcitationOptions{o.expanded, o.squeezed, o.squeeze_activation, o.gate}, streams);
    block_.add_child(std::to_string(children_++), *squeeze_);
  }
  add(std::make_unique<ConvNormActivation>(o.expanded, o.out, conv_options(1, 1, streams.next()), o.norm,
                                           FusedActivation::none));
  add_child("block", block_);
  if (!has_shortcut_ || o.drop_probability == 0) return;
  stochastic_depth_ = std::make_unique<StochasticDepth>(o.drop_probability, seed, layer);
  add_child("stochastic_depth", *stochastic_depth_);
}

ConvNormActivation& InvertedResidual::add(std::unique_ptr<ConvNormActivation> layer) {
  layers_.push_back(std::move(layer));
  block_.add_child(std::to_string(children_++), *layers_.back());
  return *layers_.back();
}

Tensor InvertedResidual::forward(const Tensor& x) {
  Tensor y = x;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) y = layers_[i]->forward(y);
  if (squeeze_) y = squeeze_->forward(y);
  ConvNormActivation& projection = *layers_.back();
  if (!has_shortcut_) return projection.forward(y);
  if (!stochastic_depth_ || !stochastic_depth_->is_training()) return projection.forward(y, x);
  return stochastic_depth_->forward(projection.forward(y), x);
}

void InvertedResidual::freeze_statistics() {
  for (const auto& each : layers_) each->freeze_statistics();
}

}  // namespace tandem::detail
