// What a model says of pictures that have no label.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/train/model_file.h"

namespace tandem {

struct PredictOptions {
  bool invert = false;  // dark on light becomes light on dark
};

struct Prediction {
  std::string path;  // of an idx file, with "#index" behind it
  std::size_t chosen = 0;
  std::vector<float> probabilities;  // one a class
};

// A picture file becomes one row: made grey where the model wants that, and resized to the model's size by
// area. An idx file of images (raw or gz), which must have the model's size, becomes a row an image. The
// model stays on its device.
std::vector<Prediction> predict_file(Model& model, const std::filesystem::path& path,
                                     const PredictOptions& options = {});

// "path,class,probability,<one column a class>", and a line for one prediction, each ending in '\n'.
std::string prediction_csv_header(const std::vector<std::string>& classes);
std::string prediction_csv_row(const Prediction& prediction, const std::vector<std::string>& classes);

}  // namespace tandem
