#include "tandem/image/render_text.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/image/font.h"

namespace tandem {
namespace {

// The later bytes of a UTF-8 character: its first byte is rendered as one box for all of them.
bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

void fill_rectangle(Image& image, int64_t x, int64_t y, int64_t width, int64_t height, Color color) {
  const uint8_t rgb[3] = {color.red, color.green, color.blue};
  const uint8_t luma = uint8_t((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
  const int64_t left = std::max<int64_t>(x, 0), right = std::min(x + width, image.width);
  const int64_t bottom = std::min(y + height, image.height);
  for (int64_t row = std::max<int64_t>(y, 0); row < bottom; ++row)
    for (int64_t column = left; column < right; ++column)
      for (int c = 0; c < image.channels; ++c) image.at(row, column, c) = image.channels == 1 ? luma : rgb[c];
}

void render_text(Image& image, int64_t x, int64_t y, std::string_view text, Color color, int scale) {
  expect(scale >= 1);
  for (const char character : text) {
    if (is_continuation(character)) continue;
    const Glyph& rows = glyph(character);
    for (int row = 0; row < glyph_height; ++row)
      for (int column = 0; column < glyph_width; ++column)
        if ((rows[size_t(row)] >> (glyph_width - 1 - column) & 1) != 0)
          fill_rectangle(image, x + column * scale, y + row * scale, scale, scale, color);
    x += glyph_advance * scale;
  }
}

int64_t text_width(std::string_view text, int scale) {
  const int64_t characters = std::ranges::count_if(text, [](char c) { return !is_continuation(c); });
  return characters == 0 ? 0 : (characters * glyph_advance - 1) * scale;
}

int64_t text_height(int scale) {
  return glyph_height * scale;
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
