// Exports a trained model to ONNX (https://onnx.ai), for use in other programs without Tandem.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/train/model_file.h"

namespace tandem {

/// What the exported model takes.
enum class ExportInput : std::uint8_t {
  image,  ///< "image": u8 [height, width, 3], RGB of any size. The graph resizes, crops and normalizes.
  tensor  ///< "input": f32 [batch, channels, height, width], normalized by the caller
};

/// How weights with more than one axis are stored; fp32 for a model in 8-bit integers, whose weights stay i8.
/// The computation is in f32.
enum class ExportWeights : std::uint8_t { fp32, fp16, bf16 };

/// The inverse of the names "image", "tensor" and "fp32", "fp16", "bf16"; they throw Error for others.
ExportInput parse_export_input(std::string_view name);
ExportWeights parse_export_weights(std::string_view name);

/// Options of export_onnx().
struct ExportOptions {
  ExportInput input = ExportInput::image;
  ExportWeights weights = ExportWeights::fp32;
  /// For models in 8-bit integers: convolutions to which a residual is added are rounded to 8 bits before the
  /// sum, too. ONNX Runtime then computes all of them in integers; the probabilities agree less.
  bool integer_sums = false;
  /// The images that the exported model is verified with; empty: eight rendered ones.
  std::vector<Image> images = {};
  /// The largest difference in probability that is accepted: 0.001, 0.05 if weights are rounded, 0.1 for a
  /// model in 8-bit integers, 0.2 with integer sums.
  std::optional<double> tolerance = std::nullopt;
};

/// What was exported, and how well it agrees.
struct ExportReport {
  std::string file;
  std::uint64_t bytes = 0;
  std::int64_t opset = 0;
  std::int64_t nodes = 0;
  std::int64_t images = 0;      ///< that it was verified with
  double max_difference = 0;    ///< in probability, over all images and classes
  std::int64_t same_class = 0;  ///< images with the same predicted class
};

/// Writes the model as one ONNX file of opset 18 whose output "probabilities" is f32 [classes], or
/// [batch, classes] for ExportInput::tensor. Class names, preprocessing and version are in its metadata.
/// Before anything is written, the bytes are read back, the graph is computed with Tandem's own
/// implementation of its operators, and the probabilities are compared with the model's. Throws Error if they
/// differ by more than the tolerance, for a network that uses an operation without a form in ONNX, and when
/// the file cannot be written; an existing file stays unchanged then.
ExportReport export_onnx(Model& model, const std::filesystem::path& path, const ExportOptions& options = {});

}  // namespace tandem
