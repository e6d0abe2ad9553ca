// What describes a network: its model and the values that the model's constructor needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/nn/loss.h"
#include "tandem/ops/activation.h"

namespace tandem {

/// Everything needed to construct a network; stored in model files. Each model reads the members it has.
struct Architecture {
  std::string model = "mlp";              ///< a name of models()
  std::vector<std::int64_t> layers = {};  ///< mlp: sizes from input to output
  std::int64_t channels = 0;              ///< models of images: channels of an image
  std::int64_t classes = 0;               ///< models of images: number of classes
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;  ///< mse: the outputs are sigmoids
  double dropout = 0;

  /// Whether the model takes rows of pixels (n, pixels), not images. False for an unknown model.
  bool expects_flat_input() const;
  std::string to_string() const;  ///< "mlp 784,200,10 sigmoid", "resnet18 with 2 classes"
};

}  // namespace tandem
