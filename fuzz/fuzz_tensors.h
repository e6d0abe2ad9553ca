// What holds for weight files of every format: tensors within limits, and the same ones after they are
// written as safetensors and read again.
#pragma once

#include <cstring>
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/files/safetensors.h"

namespace tandem {

inline std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()),
          static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype())};
}

inline void require_same(const TensorFile& a, const TensorFile& b) {
  require(a.metadata == b.metadata && a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const NamedTensor &one = a.tensors[i], &other = b.tensors[i];
    require(one.name == other.name && one.tensor.dtype() == other.tensor.dtype());
    require(one.tensor.shape() == other.tensor.shape());
    require(one.tensor.numel() == 0 || bytes_of(one.tensor) == bytes_of(other.tensor));
  }
}

// Empty tensors have no place in the data, so the order of a file that is read again may differ by them.
inline bool has_empty_tensor(const TensorFile& file) {
  for (const NamedTensor& named : file.tensors)
    if (named.tensor.numel() == 0) return true;
  return false;
}

inline void require_rewritable(const TensorFile& file) {
  const std::string bytes = to_safetensors(file);
  const TensorFile again = parse_safetensors(bytes, "again");
  if (!has_empty_tensor(file)) require_same(file, again);
  require(file.tensors.size() == again.tensors.size() && file.metadata == again.metadata);
  require(to_safetensors(again).size() == bytes.size());
}

}  // namespace tandem
