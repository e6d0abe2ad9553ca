// Explains predictions: class activation maps over the photographs they were made for, in their own pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/image/decode.h"
#include "tandem/image/heat_map.h"
#include "tandem/train/explain/class_activation.h"
#include "tandem/train/model_file.h"
#include "tandem/train/prediction.h"

namespace tandem {

/// Images on one sheet or page, at most, and the longest side of their pictures.
inline constexpr std::size_t max_explained_images = 200;
inline constexpr std::int64_t max_explained_side = 8192;

struct ExplainOptions {
  ActivationMethod method = ActivationMethod::grad_cam;
  std::string class_name = {};  ///< the class to explain; empty: the predicted one
  bool invert = false;          ///< as for predict_file()
  LoadOptions load = {};        ///< how files are read
  std::size_t count = 24;       ///< images of explain_paths(), evenly chosen
  /// Of explain_paths(): longer sides of the pictures are reduced to this; 0: one image keeps its size, up to
  /// max_explained_side, and several are reduced to 384 pixels.
  std::int64_t max_side = 0;
  /// Called after every image, if set.
  std::function<void(std::size_t done, std::size_t images)> on_progress = {};
};

/// Why one image got its prediction.
struct Explanation {
  Prediction prediction;      ///< the same as predict_file()'s; its path is empty
  std::size_t explained = 0;  ///< index of the explained class
  /// The class activation map in pixels of the image, scaled to a maximum of 1 by `peak`.
  HeatMap heat;
  /// The maximum before scaling; 0 if nothing in the image speaks for the class.
  float peak = 0;
};

/// Explains the prediction for a decoded image of any size; render_heat() draws it. Runs on the model's
/// device, in bf16 if that is this thread's matmul_precision(). Throws Error for a model without
/// convolutions, and for a class that it does not have. Not safe to call concurrently on one model.
Explanation explain_image(Model& model, const Image& image, const ExplainOptions& options = {});

/// An image file with its explanation, or the reason why there is none (prediction.error).
struct ExplainedImage : Explanation {
  std::optional<std::size_t> truth;  ///< the class that names the file's folder
  Image photo, overlay;              ///< reduced to options.max_side; images below 160 pixels are enlarged
};

struct ExplainedImages {
  std::vector<ExplainedImage> images;
  std::size_t files = 0;  ///< found; more than images.size() if not all are explained
};

/// Explains image files, and images in folders: at most options.count, evenly chosen, so that time and memory
/// are bounded. A file that cannot be read has an error. Throws Error as explain_image() does.
ExplainedImages explain_paths(Model& model, const std::vector<std::string>& paths,
                              const ExplainOptions& options = {});

}  // namespace tandem
