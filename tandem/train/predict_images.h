// The steps of a prediction that predict_file() and Classifier share.
#pragma once

#include <string>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/train/predict.h"

namespace tandem {

// An image of any size as the model's input: u8 (1, height, width, channels), transformed as the model file
// says, or converted to gray or RGB and resized by area. `op` is the tag of errors.
Tensor model_pixels(const ModelInfo& info, const Image& image, const char* op = "classifier");

// One row of probabilities per image of u8 (n, …).
std::vector<std::vector<float>> predict_probabilities(Module& module, const ModelInfo& info,
                                                      const Tensor& images);

Prediction make_prediction(std::string path, std::vector<float> row, const std::vector<std::string>& classes);

}  // namespace tandem
