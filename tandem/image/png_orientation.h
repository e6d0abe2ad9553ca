// The orientation that the metadata of a PNG states.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

// By the chunk eXIf, else by EXIF as text ("Raw profile type exif"), else by XMP; each may be before or after
// the pixels. 1 if there is none. Damaged metadata is ignored.
int png_orientation(std::span<const uint8_t> bytes);

}  // namespace tandem
