// What is in a weight file: its tensors with a few figures each, its metadata, and of a pickle every name it
// would have had Python import or call. Nothing of it is executed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/files/pth.h"
#include "tandem/report/table.h"

namespace tandem {

struct TensorFacts {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  double min = 0, max = 0, mean = 0;  // of the finite values, 0 when there are none
  std::int64_t not_finite = 0;
};

struct WeightFacts {
  std::string file;
  std::string format;  // "safetensors", "pth zip", "pth legacy", "pickle" when it was refused
  std::uint64_t bytes = 0;
  std::vector<TensorFacts> tensors;
  std::map<std::string, std::string> metadata;
  std::vector<PthName> names;
  std::string problem;  // why the tensors of a pickle could not be read; the names stand all the same

  std::int64_t parameters() const;  // floating-point values in all tensors
};

// A file that is neither safetensors nor a pickle is an Error.
WeightFacts inspect_weights(const std::filesystem::path& path);

std::string to_text(const WeightFacts& facts, const TextStyle& style);

// {"file", "format", "bytes", "parameters", "tensors": [{"name", "dtype", "shape", "min", "max", "mean",
// "not_finite"}, …], "metadata": {…}, "names": [{"name", "called", "understood"}, …], "problem"}; the last
// two for pickles only, min to mean for tensors with finite values.
std::string to_json_text(const WeightFacts& facts);

}  // namespace tandem
