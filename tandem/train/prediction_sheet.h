// Predictions as a picture: every image with what the model took it for.
#pragma once

#include <vector>

#include "tandem/image/image.h"
#include "tandem/train/predict.h"

namespace tandem {

inline constexpr std::size_t most_on_a_sheet = 600;

// The first most_on_a_sheet picture files among the predictions, each with its class, probability and name;
// one that could not be read is a grey field that says why. Images of idx files are not shown; Error where
// there is no other.
Image prediction_sheet(const std::vector<Prediction>& predictions, const std::vector<std::string>& classes,
                       const PhotoReading& reading = {});

}  // namespace tandem
