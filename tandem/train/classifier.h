// Classifier: a saved model inside an application.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/model_file.h"
#include "tandem/train/prediction.h"

namespace tandem {

/// Where and how a Classifier computes.
struct ClassifierOptions {
  Device device = cpu_device;  ///< with CUDA, calls with one image replay one captured graph
  MatmulPrecision precision = MatmulPrecision::fp32;  ///< on the CPU fp32 or bf16
};

/// Classifies images in memory with a model file, such as best.safetensors of a run: transformed as the file
/// says, with the same result to the bit as `tandem predict` on the same device in fp32. All functions may be
/// called from several threads at once; the network itself runs for one call at a time, on all cores. Nothing
/// is read from the file after construction.
///
/// Images are 8 bits per channel, rows from top to bottom, channels interleaved: 3 (RGB), 1 (gray) or 4
/// (RGBA; alpha is dropped). Calls throw Error for a null pointer, sides that are not positive, more than
/// 179 million pixels, other channels, and rows that overlap or have a negative distance.
class Classifier {
 public:
  /// Loads a model whose name is registered, and runs it once: later calls need no further preparation.
  /// Throws Error as load_model() does, without such a device, and for a precision the device does not have.
  explicit Classifier(const std::filesystem::path& file, const ClassifierOptions& options = {});
  Classifier(const std::filesystem::path& file, Device device);
  /// For a model whose name is not registered: loads the weights into `module`, which stays on its device, is
  /// put into evaluation mode, must outlive the classifier and is not to be used meanwhile. Its calls are not
  /// captured. Throws Error if they are not its weights.
  Classifier(const std::filesystem::path& file, Module& module);
  ~Classifier();
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;

  /// The prediction for an RGB image. Rows are `stride` bytes apart; 0: 3 · width.
  Prediction operator()(const std::uint8_t* rgb, std::int64_t width, std::int64_t height,
                        std::int64_t stride = 0) const;
  Prediction operator()(const ImageView& image) const;
  /// One prediction per image. The images may differ in size.
  std::vector<Prediction> operator()(std::span<const ImageView> images) const;

  /// The same into existing predictions, whose memory is reused: with the models of this library, calls
  /// allocate nothing after the first few. Throws Error unless there are as many answers as images.
  void classify(std::span<const ImageView> images, std::span<Prediction> answers) const;

  const std::vector<std::string>& classes() const { return info().classes; }
  const ModelInfo& info() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
