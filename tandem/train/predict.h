// What a model says of pictures that have no label.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/data/photo_store.h"
#include "tandem/train/model_file.h"

namespace tandem {

struct PredictOptions {
  bool invert = false;  // dark on light becomes light on dark; not of photographs
  PhotoReading reading = {};
};

struct Prediction {
  std::string path;  // of an idx file, with "#index" behind it
  std::size_t chosen = 0;
  std::vector<float> probabilities;  // one a class; none where there is an error
  std::string error = {};            // why the file could not be read
};

// A picture file becomes one row: made grey where the model wants that, and resized to the model's size by
// area. An idx file of images (raw or gz), which must have the model's size, becomes a row an image. The
// model stays on its device.
std::vector<Prediction> predict_file(Model& model, const std::filesystem::path& path,
                                     const PredictOptions& options = {});

// Files, and all images in folders (list_images()), in their order. A model of photographs brings its own
// transform, and batches are decoded in parallel; any other sees them as predict_file() does. A file that
// cannot be read is a row with an error.
std::vector<Prediction> predict_paths(Model& model, const std::vector<std::string>& paths,
                                      const PredictOptions& options = {});

// Rows that are errors.
std::size_t error_count(const std::vector<Prediction>& predictions);

// "path,class,probability,<one column a class>", and, where a row has an error, a last column "error".
std::string predictions_csv(const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& classes);
// A list of {"path", "class", "probability", "probabilities": {class: share}}, or {"path", "error"}.
std::string predictions_json(const std::vector<Prediction>& predictions,
                             const std::vector<std::string>& classes);

}  // namespace tandem
