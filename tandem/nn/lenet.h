// LeNet-5 (LeCun et al. 1998) with ReLU and max pooling, for images of 12×12 pixels or more: two 5×5
// convolutions and three linear layers. On 28×28 and 32×32 pixels it has the original sizes; larger and
// smaller feature maps are averaged to 5×5 before the first linear layer.
#pragma once

#include <cstdint>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/linear.h"

namespace tandem {

struct LeNetOptions {
  std::int64_t classes = 10;
  std::int64_t channels = 1;
  std::uint64_t seed = 1;
};

/// (n, height, width, channels), f32 or bf16 → logits (n, classes) in f32.
class LeNet : public BackboneModel {
 public:
  explicit LeNet(const LeNetOptions& options = {});

  Tensor features(const Tensor& x) override;
  void freeze_statistics() override {}  // there are none
  /// Three: each convolution, and the linear layers.
  std::vector<std::vector<std::string>> stages() const override {
    return {{"conv1"}, {"conv2"}, {"fc1", "fc2"}};
  }

 private:
  LeNetOptions options_;
  Conv2d conv1_, conv2_;
  Linear fc1_, fc2_;
};

}  // namespace tandem
