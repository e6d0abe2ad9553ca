// Checkpoints: tensors and text that are restored bit for bit or not at all. The file is a frame (magic,
// version, length and SHA-256 of the payload) followed by a safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors.h"

namespace tandem {

// The weights, two moments of the optimizer, a moving average, and text. A larger file is neither written nor
// read.
inline constexpr std::uint64_t max_checkpoint_bytes = 5 * max_weight_bytes;

// Atomic: on any failure, such as a full disk, the previous checkpoint remains.
void write_checkpoint(const std::filesystem::path& path, const TensorFile& file);
// Starts an asynchronous write_checkpoint().
PendingFile start_checkpoint_file(const std::filesystem::path& path, const TensorFile& file);

// Throws an Error that distinguishes truncated, damaged and foreign files;
// `name` is the file name in its message.
TensorFile parse_checkpoint(std::string_view bytes, const std::string& name);
// Memory is taken after the first bytes and the size of the file have been checked.
TensorFile read_checkpoint(const std::filesystem::path& path);

// What read_newest_checkpoint() found.
struct NewestCheckpoint {
  TensorFile file;
  std::string problem;  // of the newest, if the previous one was read: "…: the file is damaged"
};

// The checkpoint, or if it is damaged or missing, the previous one; nullopt if there is none. Throws the
// Error of the first if both are damaged.
std::optional<NewestCheckpoint> read_newest_checkpoint(const std::filesystem::path& path,
                                                       const std::filesystem::path& previous);

// Whether the file begins as a checkpoint does.
bool is_checkpoint(const std::filesystem::path& path);

}  // namespace tandem
