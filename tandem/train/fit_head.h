// The last layer of a classifier, fitted to the features of its training images by logistic regression. With
// few images and pretrained features that is better than training it by gradient steps, and takes one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/nn/backbone_model.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/logistic_regression.h"

namespace tandem {

// Replaces the values of model.head_layer(). The features are computed in evaluation mode, on the model's
// device. Returns the evaluation of the fitted model on the images. Throws Error for fewer than two classes,
// for features that are not finite, and when they do not fit into memory.
Evaluation fit_head(BackboneModel& model, const ImageSet& images, const ImageInput& input,
                    const LogisticOptions& options = {});

// The same in two steps: the features of images, which can be fitted more than once.
struct HeadFeatures {
  Tensor computed;  // on the model's device
  Features rows;    // the same values
  std::vector<std::int32_t> labels;
  std::int64_t classes = 0;
};
HeadFeatures head_features(BackboneModel& model, const ImageSet& images, const ImageInput& input);
Evaluation fit_head(BackboneModel& model, const HeadFeatures& features, const LogisticOptions& options = {});

}  // namespace tandem
