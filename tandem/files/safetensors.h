// The safetensors format: named tensors and a few words of text in one file that other tools read. Eight
// bytes of length (little-endian), a JSON header padded with spaces, then the data, without gaps.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tandem/core/write_file.h"
#include "tandem/tensor/named_tensor.h"

namespace tandem {

struct TensorFile {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;
};

// Tensors of any device and layout are written row-major, in their order. The metadata gains "tandem.sha256",
// the SHA-256 of the data. Names must differ.
std::string to_safetensors(const TensorFile& file);
// The same for a PendingFile: the data is not copied where it lies in the right order on the host.
FileParts safetensors_parts(const TensorFile& file);

// Trusts nothing: header, offsets, sizes and, where the metadata has "tandem.sha256", the data are checked.
// Tensors come in the order of their data, on the CPU; "tandem.sha256" is taken out of the metadata. `name`
// stands in errors.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name);

// The same with files; writing is atomic.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);
TensorFile read_safetensors(const std::filesystem::path& path);

}  // namespace tandem
