// Predictions rendered as a contact sheet: every image with its predicted class.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tandem/image/contact_sheet.h"
#include "tandem/train/predict.h"

namespace tandem {

inline constexpr std::size_t max_sheet_images = 600;

// The index of the class that names the file's folder, as in test/dirty/0001.jpg; nothing if none does.
std::optional<std::size_t> class_of_folder(const std::string& path, const std::vector<std::string>& classes);

// A gray cell with the reason why a file could not be read.
LabeledImage error_cell(const std::string& name, const std::string& reason);

// `count` image files, at most max_sheet_images, spread evenly over the predictions, each with class,
// probability and file name; right and wrong ones are marked where the folder names the class. A file that
// could not be read is a gray cell with the reason. Images of idx files are not shown. Throws Error if there
// is nothing to show.
Image prediction_sheet(const std::vector<Prediction>& predictions, const std::vector<std::string>& classes,
                       const PhotoDecodeOptions& decode = {}, std::size_t count = max_sheet_images);

}  // namespace tandem
