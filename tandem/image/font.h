// The font of labels, made for Tandem: printable ASCII and the letters of Latin-1 as round strokes, rendered
// with anti-aliasing at any size.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Lengths are in 1/30 of the distance between the font's grid points; y points down from the baseline.
struct Stroke {
  double from_x, from_y, to_x, to_y;
};

struct Glyph {
  char32_t character = 0;
  int advance = 0;
  std::vector<Stroke> strokes;
};

// Above and below the baseline, for all glyphs together.
inline constexpr int font_ascent = 252, font_descent = 51;

// The glyph of a character; an empty box if the font has none.
const Glyph& font_glyph(char32_t character);

// How much of each pixel a glyph covers, from 0 to 1, row by row.
struct GlyphCoverage {
  std::int64_t left = 0, top = 0;  // of the first pixel, from the origin on the baseline; y points down
  std::int64_t width = 0, height = 0;
  std::vector<float> values;
};

// Renders a glyph at `pixels_per_unit`, its origin `shift` pixels right of a pixel's left edge.
GlyphCoverage rasterize(const Glyph& glyph, double pixels_per_unit, double shift);

}  // namespace tandem
