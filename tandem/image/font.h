// A bitmap font of five by eight pixels for printable ASCII, drawn for Tandem. The eighth row holds the tails
// of g, j, p, q and y.
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

constexpr int glyph_width = 5;
constexpr int glyph_height = 8;
constexpr int glyph_advance = glyph_width + 1;

// A row a byte from the top; bit 4 is the leftmost pixel.
using Glyph = std::array<uint8_t, glyph_height>;

// What has no glyph is drawn as an empty box.
const Glyph& glyph(char character);

}  // namespace tandem
