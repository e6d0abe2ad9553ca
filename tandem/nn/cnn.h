// A small convolutional network for images of 8×8 pixels or more: three stages of two 3×3 convolutions with
// batch norm, then global average pooling and one linear layer. Each stage has half the resolution and twice
// the channels of the one before.
#pragma once

#include <memory>
#include <vector>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/conv_norm.h"

namespace tandem {

struct CnnOptions {
  std::int64_t classes = 10;
  std::int64_t channels = 1;
  std::int64_t width = 32;  ///< channels of the first stage
  std::uint64_t seed = 1;
};

/// (n, height, width, channels), f32 or bf16 → logits (n, classes) in f32.
class Cnn : public BackboneModel {
 public:
  explicit Cnn(const CnnOptions& options = {});

  Tensor features(const Tensor& x) override;
  Tensor stage_features(const Tensor& x) override;
  void freeze_statistics() override;
  std::vector<std::vector<std::string>> stages() const override;  ///< three
  /// As given to the constructor.
  const CnnOptions& options() const { return options_; }

 private:
  // The output of a stage, whose input for all but the first is pooled.
  Tensor stage(int index, const Tensor& x);

  CnnOptions options_;
  std::vector<std::unique_ptr<ConvNorm>> layers_;  // conv1, bn1, conv2, …
};

}  // namespace tandem
