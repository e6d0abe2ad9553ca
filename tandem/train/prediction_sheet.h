// Predictions rendered as a contact sheet: every image with its predicted class.
#pragma once

#include <vector>

#include "tandem/image/image.h"
#include "tandem/train/predict.h"

namespace tandem {

inline constexpr std::size_t max_sheet_images = 600;

// The first max_sheet_images image files among the predictions, each with class, probability and file name; a
// file that could not be read is a gray cell with the reason. Images of idx files are not shown. Throws Error
// if there is nothing to show.
Image prediction_sheet(const std::vector<Prediction>& predictions, const std::vector<std::string>& classes,
                       const PhotoDecodeOptions& decode = {});

}  // namespace tandem
