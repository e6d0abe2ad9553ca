// The safetensors format: named tensors and text metadata in one file that other tools read. Eight bytes of
// header length (little-endian), a JSON header padded with spaces, then the data without gaps.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

/// The contents of a weight file.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;
};

/// The bytes of a safetensors file. Tensors of any device and layout are written row-major in the given
/// order. Adds "tandem.sha256", the SHA-256 of the data, to the metadata. Throws Error for duplicate names.
std::string to_safetensors(const TensorFile& file);

/// Parses untrusted bytes: header, offsets, sizes and the SHA-256, if there is one, are checked. Tensors are
/// on the CPU, in the order of their data; "tandem.sha256" is removed from the metadata. Dtypes that Tandem
/// lacks become the smallest one that has all their values: F16, F8_E4M3 and F8_E5M2 → f32; BOOL → u8; I8,
/// I16 and U16 → i32; U32 and U64 → i64, where a U64 from 2⁶³ on throws Error. Throws Error for an invalid
/// file, a header of more than 100 MB and more than 200,000 tensors; `name` is the file name in its message.
TensorFile parse_safetensors(std::string_view bytes, const std::string& name);

/// Writes a file atomically: on failure the old file remains.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);
/// parse_safetensors() of a file.
TensorFile read_safetensors(const std::filesystem::path& path);

}  // namespace tandem
