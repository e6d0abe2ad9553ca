// A bitmap font of 5 x 8 pixels for printable ASCII, made for Tandem. The eighth row holds the descenders of
// g, j, p, q and y.
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

constexpr int glyph_width = 5;
constexpr int glyph_height = 8;
constexpr int glyph_advance = glyph_width + 1;

// One byte per row, top row first; bit 4 is the leftmost pixel.
using Glyph = std::array<uint8_t, glyph_height>;

// The glyph of a character; an empty box if the font has none.
const Glyph& glyph(char character);

}  // namespace tandem
