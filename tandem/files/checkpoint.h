// Checkpoints: tensors and text that must come back bit for bit or not at all. A frame around a safetensors
// file: a line of magic, version, length and SHA-256 of the payload, then the payload.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/files/safetensors.h"

namespace tandem {

// Atomic: on any failure, a full disk too, the checkpoint that was there stays as it was.
void write_checkpoint(const std::filesystem::path& path, const TensorFile& file);
// The same in two steps (core/write_file.h).
PendingFile start_checkpoint_file(const std::filesystem::path& path, const TensorFile& file);

// A file cut short, a flipped bit anywhere or a file of another kind is an Error that says which.
// `name` stands in it.
TensorFile parse_checkpoint(std::string_view bytes, const std::string& name);
TensorFile read_checkpoint(const std::filesystem::path& path);

}  // namespace tandem
