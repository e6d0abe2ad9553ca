// Residual networks (He et al. 2015) with torchvision's names and shapes, so that weights can be exchanged in
// both directions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/conv_norm.h"

namespace tandem {

struct ResNetOptions {
  int depth = 18;  ///< 18, 34 or 50
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  std::uint64_t seed = 1;
};

class ResNetBlock;

/// Normalized images (n, height, width, channels), f32 or bf16 → logits (n, classes) in f32.
class ResNet : public BackboneModel {
 public:
  /// Throws Error for another depth, or for counts below 1.
  explicit ResNet(const ResNetOptions& options = {});
  ~ResNet() override;

  Tensor features(const Tensor& x) override;
  Tensor stage_features(const Tensor& x) override;
  void freeze_statistics() override;
  /// Four, the first with the convolution before it.
  std::vector<std::vector<std::string>> stages() const override {
    return {{"conv1", "bn1", "layer1"}, {"layer2"}, {"layer3"}, {"layer4"}};
  }

  /// As given to the constructor.
  const ResNetOptions& options() const { return options_; }

 private:
  void check_images(const Tensor& x) const;
  Tensor stem(const Tensor& x);
  Tensor chained_convolutions(const Tensor& x);

  ResNetOptions options_;
  ConvNorm stem_;
  std::vector<std::unique_ptr<Module>> stages_;  // named layer1 … layer4
  std::vector<std::unique_ptr<ResNetBlock>> blocks_;
};

}  // namespace tandem
