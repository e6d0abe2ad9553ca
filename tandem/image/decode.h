// Reading image files. The format is told by the content, never by the name: JPEG, PNG, BMP, PPM and PGM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

struct LoadOptions {
  int64_t max_pixels = 179'000'000;  // checked against the header, before memory is taken
};

// A grey file gives one channel, any other RGB. EXIF orientation is applied, alpha is blended over white, 16
// bits are rounded to 8, CMYK becomes RGB. A file that is missing, cut short, damaged, too large or no image
// is an Error of one line that names it.
Image load_image(const std::filesystem::path& path, const LoadOptions& options = {});

// The same for bytes in memory; `name` is what errors call them.
Image decode_image(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options = {});

}  // namespace tandem
