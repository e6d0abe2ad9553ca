// Reads a whole file into memory after checking its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tandem {

// The bytes of a regular file, or of a file in a packed set (packed_path.h). Throws Error ("[op] model.bin:
// no such file") if it cannot be read or has more than `max_bytes` bytes.
std::string read_file(const char* op, const std::filesystem::path& path, std::uint64_t max_bytes);

// The maximum size of a weight file. Reading one takes this much twice: for its bytes and for the tensors.
inline constexpr std::uint64_t max_weight_bytes = std::uint64_t{2} << 30;

}  // namespace tandem
