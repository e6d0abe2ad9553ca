// A state dict as it is stored: with its names and dtypes, also those that Tandem lacks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/shape.h"

namespace tandem {

struct StoredPthTensor {
  std::string name;
  std::string_view type;  // as safetensors calls it: "F16"
  Shape shape;
  std::vector<std::byte> bytes;  // row-major
};

struct StoredPth {
  std::vector<StoredPthTensor> tensors;
  std::string ignored;  // names of entries that are not tensors, with commas
};

// As parse_pth(), which converts dtypes and removes the prefix "module.".
StoredPth parse_pth_stored(std::string_view bytes, const std::string& name);

}  // namespace tandem
