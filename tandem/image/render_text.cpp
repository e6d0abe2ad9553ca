#include "tandem/image/render_text.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/image/font.h"

namespace tandem {
namespace {

constexpr int line_height = 8;  // of scale 1

double pixels_per_unit(int scale) {
  return static_cast<double>(line_height * scale) / (font_ascent + font_descent);
}

// The later bytes of a UTF-8 character.
bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Removes the first UTF-8 character and returns it; bytes that are not UTF-8 give characters without a glyph.
char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  if (first < 0x80) return first;
  if (first < 0xC0) return 0xFFFD;
  char32_t character = first & (first >= 0xF0 ? 0x07u : first >= 0xE0 ? 0x0Fu : 0x1Fu);
  for (int bytes = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1; bytes > 0; --bytes) {
    if (text.empty() || !is_continuation(text[0])) return 0xFFFD;
    character = character << 6 | (static_cast<unsigned char>(text[0]) & 0x3Fu);
    text.remove_prefix(1);
  }
  return character;
}

// Mixes the color into the pixels, as far as the glyph covers them.
void blend(Image& image, int64_t x, int64_t y, const GlyphCoverage& coverage, const uint8_t (&levels)[3]) {
  for (int64_t row = 0; row < coverage.height; ++row)
    for (int64_t column = 0; column < coverage.width; ++column) {
      const int64_t to_y = y + coverage.top + row, to_x = x + coverage.left + column;
      if (to_y < 0 || to_x < 0 || to_y >= image.height || to_x >= image.width) continue;
      const float share = coverage.values[size_t(row * coverage.width + column)];
      for (int c = 0; c < image.channels; ++c) {
        uint8_t& pixel = image.at(to_y, to_x, c);
        pixel = uint8_t(std::lround(float(pixel) + share * (float(levels[c]) - float(pixel))));
      }
    }
}

uint8_t luma_of(Color color) {
  return uint8_t((19595u * color.red + 38470u * color.green + 7471u * color.blue + 0x8000u) >> 16);
}

}  // namespace

void fill_rectangle(Image& image, int64_t x, int64_t y, int64_t width, int64_t height, Color color) {
  const uint8_t rgb[3] = {color.red, color.green, color.blue};
  const uint8_t luma = luma_of(color);
  const int64_t left = std::max<int64_t>(x, 0), right = std::min(x + width, image.width);
  const int64_t bottom = std::min(y + height, image.height);
  for (int64_t row = std::max<int64_t>(y, 0); row < bottom; ++row)
    for (int64_t column = left; column < right; ++column)
      for (int c = 0; c < image.channels; ++c) image.at(row, column, c) = image.channels == 1 ? luma : rgb[c];
}

void render_text(Image& image, int64_t x, int64_t y, std::string_view text, Color color, int scale) {
  expect(scale >= 1);
  const uint8_t luma = luma_of(color);
  const uint8_t gray[3] = {luma, luma, luma}, rgb[3] = {color.red, color.green, color.blue};
  const double unit = pixels_per_unit(scale);
  const int64_t baseline = y + std::llround(font_ascent * unit);
  double position = 0;
  while (!text.empty()) {
    const Glyph& glyph = font_glyph(take_character(text));
    const double whole = std::floor(position);
    blend(image, x + int64_t(whole), baseline, rasterize(glyph, unit, position - whole),
          image.channels == 1 ? gray : rgb);
    position += glyph.advance * unit;
  }
}

int64_t text_width(std::string_view text, int scale) {
  int64_t units = 0;
  while (!text.empty()) units += font_glyph(take_character(text)).advance;
  return int64_t(std::ceil(double(units) * pixels_per_unit(scale)));
}

int64_t text_height(int scale) {
  return line_height * scale;
}

std::string shorten_text(std::string_view text, int64_t width, int scale) {
  if (text_width(text, scale) <= width) return std::string(text);
  while (!text.empty()) {
    while (is_continuation(text.back()) && text.size() > 1) text.remove_suffix(1);
    text.remove_suffix(1);
    const std::string shorter = std::string(text) + "...";
    if (text_width(shorter, scale) <= width) return shorter;
  }
  return "";
}

}  // namespace tandem
