// Classifier: predictions of a saved model for images in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/train/model_file.h"
#include "tandem/train/prediction.h"

namespace tandem {

/// Classifies images with a model file, such as best.safetensors of a run. Not thread-safe: use one per
/// thread.
class Classifier {
 public:
  /// Loads a model whose name is registered. Throws Error as load_model() does.
  explicit Classifier(const std::filesystem::path& file, Device device = cpu_device);
  /// For a model whose name is not registered: loads the weights into `module`, which stays on its device, is
  /// put into evaluation mode and must outlive the classifier. Throws Error if they are not its weights.
  Classifier(const std::filesystem::path& file, Module& module);

  /// The prediction for an 8-bit image: rows from top to bottom, channels interleaved, 1 (gray), 3 (RGB) or 4
  /// (RGBA; alpha is dropped). An image of another size is resized, or transformed as the file says.
  /// Throws Error for sizes that are not positive.
  Prediction operator()(const std::uint8_t* pixels, std::int64_t width, std::int64_t height,
                        std::int64_t channels = 3);
  Prediction operator()(const Image& image);

  const std::vector<std::string>& classes() const { return info_.classes; }
  const ModelInfo& info() const { return info_; }

 private:
  ModelInfo info_;
  std::unique_ptr<Module> own_module_;  // null: the caller's
  Module* module_;
};

}  // namespace tandem
