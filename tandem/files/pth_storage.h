// Storages of PyTorch files: typed flat arrays of which tensors are strided views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

// How elements become those of a tensor: copied, or converted from this type.
enum class StorageElement { same, f16, i8, i16 };

struct StorageType {
  std::string_view name;              // "torch.FloatStorage"
  std::string_view safetensors_name;  // "F32"
  StorageElement element;
  std::uint64_t element_size;
  DType dtype;  // of the tensors read from it
};

// nullptr for a name that is not a storage type or one without a dtype in Tandem.
const StorageType* find_storage_type(std::string_view name);

struct StorageView {
  Shape shape;
  Dims strides;
  std::int64_t offset = 0;
};

// A contiguous copy of the view, converted to type.dtype. The view must lie within `data`.
Tensor copy_view(const StorageView& view, const StorageType& type, std::string_view data);
// The same, not converted.
std::vector<std::byte> view_bytes(const StorageView& view, const StorageType& type, std::string_view data);

}  // namespace tandem
