// Renders rectangles and text (in the built-in font, anti-aliased) onto images.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
};

// Both functions clip at the borders; on a gray image they write the luma of the color.
void fill_rectangle(Image& image, int64_t x, int64_t y, int64_t width, int64_t height, Color color);

// (x, y) is the upper left corner of the first character; a line is 8 · `scale` pixels high. The font has
// ASCII and Latin-1; each other UTF-8 character becomes an empty box.
void render_text(Image& image, int64_t x, int64_t y, std::string_view text, Color color, int scale = 1);

int64_t text_width(std::string_view text, int scale = 1);
int64_t text_height(int scale = 1);

// The text, or as many of its first characters as fit into `width` together with "...".
std::string shorten_text(std::string_view text, int64_t width, int scale = 1);

}  // namespace tandem
