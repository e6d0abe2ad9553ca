// The shapes and types of what a plugin's function reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/dtype.h"

namespace tandem {

// The shape and type of an input or output.
struct ArrayFormat {
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t channels = 1;

  std::int64_t elements() const { return rows * columns * channels; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

struct KernelFormat {
  std::string function;  // "max": the C function is tandem_max, the Python function is max
  std::vector<ArrayFormat> inputs;
  std::vector<ArrayFormat> outputs;
  int sets = 1;  // of inputs and outputs; a call works on one of them
};

}  // namespace tandem
