// A convolutional network that learns small photographs, such as those of CIFAR-10, in few epochs, made after
// Keller Jordan's airbench94 ("94% on CIFAR-10 in 3.29 Seconds on a Single GPU", 2024): a fixed 2×2
// convolution that whitens patches, with a bias that is trained, and three stages of two 3×3 convolutions
// that start as identities. The first convolution of a stage is followed by max pooling; both by batch norm,
// whose scale is fixed at 1, and GELU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/conv_norm.h"
#include "tandem/nn/initialized_from_data.h"

namespace tandem {

struct WhitenedCnnOptions {
  std::int64_t classes = 10;
  std::int64_t channels = 3;
  std::vector<std::int64_t> widths = {64, 256, 256};  ///< channels of the three stages
  std::uint64_t seed = 1;
};

/// (n, height, width, channels) of 25×25 pixels or more, f32 or bf16 → logits (n, classes) in f32. The last
/// maps are pooled 3×3 by their maximum, averaged if more than one value is left, and divided by 9; the last
/// layer has no bias. The filters of "whiten" are random until initialize() computes them.
class WhitenedCnn : public BackboneModel, public InitializedFromData {
 public:
  /// Throws Error unless there are three widths.
  explicit WhitenedCnn(const WhitenedCnnOptions& options = {});

  Tensor features(const Tensor& x) override;
  void freeze_statistics() override;
  std::vector<std::vector<std::string>> stages() const override;  ///< three; the whitening is in the first

  std::int64_t images_for_initialization() const override { return 5000; }
  /// whitening_filters() of the images.
  void initialize(const Tensor& images, const PixelNorm& norm) override;

 private:
  WhitenedCnnOptions options_;
  Conv2d whiten_;
  std::vector<std::unique_ptr<ConvNorm>> layers_;  // conv1, bn1, conv2, …
};

}  // namespace tandem
