// Checkpoints: tensors and text that are restored bit for bit or not at all. The file is a frame (magic,
// version, length and SHA-256 of the payload) followed by a safetensors file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/core/write_file.h"
#include "tandem/files/safetensors.h"

namespace tandem {

// Atomic: on any failure, such as a full disk, the previous checkpoint remains.
void write_checkpoint(const std::filesystem::path& path, const TensorFile& file);
// Starts an asynchronous write_checkpoint().
PendingFile start_checkpoint_file(const std::filesystem::path& path, const TensorFile& file);

// Throws an Error that distinguishes truncated, damaged and foreign files;
// `name` is the file name in its message.
TensorFile parse_checkpoint(std::string_view bytes, const std::string& name);
TensorFile read_checkpoint(const std::filesystem::path& path);

// Whether the file begins as a checkpoint does.
bool is_checkpoint(const std::filesystem::path& path);

}  // namespace tandem
