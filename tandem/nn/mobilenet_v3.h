// MobileNetV3 (Howard et al. 2019) with torchvision's names, shapes and initial weights, so that weights can
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

struct MobileNetV3Options {
  bool large = false;  ///< mobilenet_v3_large; else mobilenet_v3_small
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  double dropout = 0.2;  ///< before the last layer
  std::uint64_t seed = 1;
};

/// Normalized images (n, height, width, channels), f32 or bf16 → logits (n, classes) in f32. The head is the
/// last layer of torchvision's classifier; the layers before it compute features.
class MobileNetV3 : public BackboneModel {
 public:
  /// Throws Error for counts below 1 and for a dropout outside [0, 1).
  explicit MobileNetV3(const MobileNetV3Options& options = {});
  ~MobileNetV3() override;

  Tensor features(const Tensor& x) override;
  /// The means of the last blocks at strides 8 and 16, and features().
  Tensor stage_features(const Tensor& x) override;
  void freeze_statistics() override;
  /// One for each size of the images within the network.
  std::vector<std::vector<std::string>> stages() const override;

  /// As given to the constructor.
  const MobileNetV3Options& options() const { return options_; }

 private:
  // The mean of the last convolution, then the first layer of the classifier. Appends the means of the last
  // blocks before the stride doubles to `means` unless it is null.
  Tensor compute(const Tensor& x, std::vector<Tensor>* means);

  MobileNetV3Options options_;
  std::unique_ptr<detail::Container> features_, classifier_;
  std::unique_ptr<detail::ConvNormActivation> stem_, last_;
  std::vector<std::unique_ptr<detail::InvertedResidual>> blocks_;
  Linear hidden_;
};

}  // namespace tandem
