// JPEGs that other decoders than libjpeg decode to the same pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tandem/image/decode.h"

namespace tandem {

// The size of a JPEG as cameras and programs commonly write it: baseline, upright, gray or YCbCr with chroma
// 4:4:4, 4:2:2 or 4:2:0 in one scan, not truncated. Reads the header and looks for markers in the rest.
// Nothing for all other files, also damaged ones and those with too many pixels.
std::optional<ImageInfo> read_common_jpeg(std::span<const uint8_t> bytes, const LoadOptions& options = {});

}  // namespace tandem
