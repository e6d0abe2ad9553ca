// How a model does on a set of images.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/train/image_input.h"

namespace tandem {

struct Evaluation {
  double loss = 0;      // mean
  double accuracy = 0;  // a share of 1; NaN without images
  std::int64_t classes = 0;
  std::vector<std::int32_t> predictions;  // one an image
  std::vector<float> outputs;             // images × classes, what the network says
};

// The model's outputs (images, classes) on the model's device, with nothing recorded. The images may be
// anywhere. The model is in evaluation mode meanwhile, then as it was.
Tensor outputs_of(Module& model, const Tensor& images, const ImageInput& input = {});

Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input = {});

// Outputs as probabilities, on the host: softmax for cross-entropy; sigmoid outputs (mse) are divided by
// their sum.
std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss);

}  // namespace tandem
