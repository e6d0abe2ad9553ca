// A safetensors file as parts for a PendingFile, without copying contiguous host tensors.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/write_file.h"
#include "tandem/files/safetensors.h"

namespace tandem {

// A tensor as it stands in a file, with a dtype that Tandem may lack.
struct StoredTensor {
  std::string name;
  std::string_view type;  // of the format: "F16"
  Shape shape;
  std::span<const std::byte> bytes;  // row-major
};

// `keep_alive` owns the bytes of the tensors.
FileParts safetensors_parts(const std::map<std::string, std::string>& metadata,
                            const std::vector<StoredTensor>& tensors, std::shared_ptr<const void> keep_alive);

// The same bytes as to_safetensors().
FileParts safetensors_parts(const TensorFile& file);

}  // namespace tandem
