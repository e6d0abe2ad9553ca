// Residual networks for photographs (He et al. 2015), with torchvision's names and shapes, so that its
// weights can be loaded and Tandem's can be used there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/nn/conv_norm.h"
#include "tandem/nn/linear.h"

namespace tandem {

struct ResNetOptions {
  int depth = 18;  // 18, 34 or 50
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  std::uint64_t seed = 1;
};

class ResNetBlock;

// (n, height, width, channels), f32 or bf16, normalised → logits (n, classes) in f32.
class ResNet : public Module {
 public:
  explicit ResNet(const ResNetOptions& options = {});
  ~ResNet() override;

  Tensor forward(const Tensor& x) override;

  // Everything but the last layer.
  void freeze_backbone();
  // Batch norms keep their running statistics, in training too.
  void fix_statistics();

  const ResNetOptions& options() const { return options_; }

 private:
  ResNetOptions options_;
  ConvNorm stem_;
  std::vector<std::unique_ptr<Module>> stages_;  // named layer1 … layer4
  std::vector<std::unique_ptr<ResNetBlock>> blocks_;
  Linear head_;
};

}  // namespace tandem
