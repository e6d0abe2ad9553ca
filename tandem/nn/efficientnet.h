// EfficientNet-B0 (Tan and Le 2019) with torchvision's names, shapes and initial weights, so that weights can
// be exchanged in both directions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/backbone_model.h"

namespace tandem {
namespace detail {
class ConvNormActivation;
class InvertedResidual;
class Container;
}  // namespace detail

struct EfficientNetOptions {
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  double dropout = 0.2;           ///< before the last layer
  double stochastic_depth = 0.2;  ///< of the last block; that of the others rises to it linearly
  std::uint64_t seed = 1;
};

/// Normalized images (n, height, width, channels), f32 or bf16 → logits (n, classes) in f32.
class EfficientNet : public BackboneModel {
 public:
  /// Throws Error for counts below 1 and for probabilities outside [0, 1).
  explicit EfficientNet(const EfficientNetOptions& options = {});
  ~EfficientNet() override;

  Tensor features(const Tensor& x) override;
  /// The means of the last blocks at strides 8 and 16, and features().
  Tensor stage_features(const Tensor& x) override;
  void freeze_statistics() override;
  /// Seven, the first and the last with the convolutions before and after them.
  std::vector<std::vector<std::string>> stages() const override;

  /// As given to the constructor.
  const EfficientNetOptions& options() const { return options_; }

 private:
  // The mean of the last convolution. Appends the means of the last blocks before the stride doubles to
  // `means` unless it is null.
  Tensor compute(const Tensor& x, std::vector<Tensor>* means);

  EfficientNetOptions options_;
  std::unique_ptr<detail::Container> features_, classifier_;
  std::vector<std::unique_ptr<detail::Container>> stages_;
  std::unique_ptr<detail::ConvNormActivation> stem_, last_;
  std::vector<std::unique_ptr<detail::InvertedResidual>> blocks_;
};

}  // namespace tandem
