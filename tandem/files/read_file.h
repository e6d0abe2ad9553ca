// Reads a whole file into memory, its size known and judged before memory is taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tandem {

// The bytes of a regular file, or "[op] model.bin: no such file"; a file larger than `limit` bytes is
// refused.
std::string read_file(const char* op, const std::filesystem::path& path, std::uint64_t limit);

}  // namespace tandem
