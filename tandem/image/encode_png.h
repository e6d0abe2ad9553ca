// Writing PNG: into memory (reports embed it) or to a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tandem/image/image.h"

namespace tandem {

std::vector<uint8_t> encode_png(const Image& image);

// The file appears whole or not at all: see core/write_file.h.
void save_png(const std::filesystem::path& path, const Image& image);

}  // namespace tandem
