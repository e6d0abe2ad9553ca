// Writing PNG, to memory (to embed in a report) or to a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

/// The bytes of a PNG file. Throws Error for an empty image.
std::vector<uint8_t> encode_png(const Image& image);

/// Writes a PNG file atomically: the file is complete or not there at all. Throws Error if it cannot be
/// written.
void save_png(const std::filesystem::path& path, const Image& image);

}  // namespace tandem
