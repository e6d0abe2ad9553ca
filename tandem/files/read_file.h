// Reads a whole file into memory after checking its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tandem {

// The bytes of a regular file. Throws Error ("[op] model.bin: no such file") if it cannot be read or has more
// than `max_bytes` bytes.
std::string read_file(const char* op, const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace tandem
