// The answer of a classifier for one image.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/image/decode_error.h"

namespace tandem {

/// The prediction for one image, or the reason why there is none.
struct Prediction {
  std::string path;                         ///< for images of an idx file followed by "#index"
  std::size_t chosen = 0;                   ///< index of the predicted class
  std::string class_name = {};              ///< its name
  float probability = 0;                    ///< of that class
  std::vector<float> probabilities;         ///< one per class; empty if there is an error
  std::string error = {};                   ///< why the file could not be read; empty otherwise
  SkipKind error_kind = SkipKind::damaged;  ///< the kind of that error
};

}  // namespace tandem
