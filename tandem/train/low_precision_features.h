// The features of a frozen backbone in bf16 or in 8-bit integers, while its last layer is trained.
#pragma once

#include <string>

#include "tandem/nn/backbone_model.h"
#include "tandem/train/fit_options.h"
#include "tandem/train/image_input.h"

namespace tandem {

class LowPrecisionFeatures {
 public:
  // Of a model on the CPU, whose batch norms keep their statistics from now on. The ranges of 8-bit
  // activations are chosen from `images`, u8 ones of the training set. The model must outlive it. Throws
  // Error for 8-bit features of a model that is not a ResNet.
  LowPrecisionFeatures(BackboneModel& model, FeaturePrecision precision, const Tensor& images,
                       const ImageInput& input);
  ~LowPrecisionFeatures();  // the features are those of the model again
  LowPrecisionFeatures(const LowPrecisionFeatures&) = delete;
  LowPrecisionFeatures& operator=(const LowPrecisionFeatures&) = delete;

  const std::string& description() const { return description_; }

 private:
  BackboneModel& model_;
  std::string description_;
};

}  // namespace tandem
