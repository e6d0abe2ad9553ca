// Converts weight files of other formats to safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/core/shape.h"

namespace tandem {

struct ConvertedTensor {
  std::string name;
  std::string dtype;  ///< as safetensors calls it: "F16"
  Shape shape;
};

struct ConvertReport {
  std::string from, to;
  std::string format;       ///< of the file that was read: "pth zip", "pth legacy", "ONNX" or "npz"
  std::uint64_t bytes = 0;  ///< of the file that was written
  std::vector<ConvertedTensor> tensors;
  std::string ignored;  ///< names of entries that are not tensors, with commas
};

/// Writes the tensors of a PyTorch file, the constants of an ONNX file or the arrays of an .npz file as
/// safetensors, atomically: names, shapes, dtypes and bits are kept. The format is detected from the content.
/// Nothing in a pickle is executed. Throws Error for a file that cannot be read completely, for a pickle with
/// names that weights do not need, for a safetensors file, and if `to` exists unless `overwrite` is set.
ConvertReport convert_weights(const std::filesystem::path& from, const std::filesystem::path& to,
                              bool overwrite = false);

/// JSON: {"from", "to", "format", "bytes", "tensors": [{"name", "dtype", "shape"}, …], "ignored"}.
std::string to_json_text(const ConvertReport& report);

}  // namespace tandem
