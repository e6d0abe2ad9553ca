// The JSON header of a safetensors file, read in one pass: time and memory are linear in its size, and what
// it claims is checked before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"

namespace tandem {

// An element type of the format.
struct SafetensorsType {
  std::string_view name;  // "F16"
  std::uint64_t size;     // bytes per element in the file
  DType dtype;            // of the tensor that is read
  // Converts elements to `dtype`; nullptr: they are copied. False for a value that `dtype` does not have.
  bool (*convert)(const std::byte* from, std::size_t count, std::byte* to) = nullptr;
};

// The name that a tensor of this dtype gets in a file.
std::string_view safetensors_type_name(DType dtype);

struct SafetensorsEntry {
  std::string name;
  const SafetensorsType* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // of the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their data
};

struct SafetensorsLimits {
  std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
  std::size_t max_tensors = 200'000;
  std::size_t max_metadata = 100'000;  // entries
};

// Parses the text of a header. The tensors must cover `data_size` bytes exactly once. Throws Error with
// `name` as the file name.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_size,
                                           const std::string& name, const SafetensorsLimits& limits = {});

}  // namespace tandem
