// Inspects weight files without executing anything in them: tensors with summary statistics, metadata, and
// the names that a pickle would make Python import or call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/files/pth.h"

namespace tandem {

struct TextStyle;

/// Summary of one tensor.
struct TensorFacts {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  double min = 0, max = 0, mean = 0;  ///< of the finite values; 0 without any
  std::int64_t not_finite = 0;        ///< number of NaNs and infinities
};

/// Summary of a weight file.
struct WeightFacts {
  std::string file;
  /// "safetensors", "pth zip" or "pth legacy"; "pickle" or "pickle in a zip archive" for a refused file.
  std::string format;
  std::uint64_t bytes = 0;
  std::vector<TensorFacts> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<PthName> names;
  std::string problem;  ///< why a pickle is refused; `names` is filled all the same

  /// The names that are not on the closed list of those that weights need.
  std::vector<std::string> suspicious() const;
  /// Number of floating-point values in all tensors, and of 8-bit ones in a file of `tandem quantize`.
  std::int64_t parameters() const;
};

/// Throws Error for a file that is neither safetensors nor a pickle.
WeightFacts inspect_weights(const std::filesystem::path& path);

/// A table for a terminal.
std::string to_text(const WeightFacts& facts, const TextStyle& style);

/// JSON: {"file", "format", "bytes", "parameters", "tensors": [{"name", "dtype", "shape", "min", "max",
/// "mean", "not_finite"}, …], "metadata": {…}, "names": [{"name", "called", "understood"}, …], "suspicious":
/// […], "problem"}; the last three only for pickles, min, max and mean only for tensors with finite values.
std::string to_json_text(const WeightFacts& facts);

}  // namespace tandem
