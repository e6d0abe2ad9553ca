// Drawing on images: rectangles and text in the built-in font.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/image/image.h"

namespace tandem {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// Both clip at the borders; on a grey image the colour's luma is drawn.
void fill_rectangle(Image& image, int64_t x, int64_t y, int64_t width, int64_t height, Colour colour);

// (x, y) is the upper left corner of the first letter; a letter is 5 x 8 pixels, `scale` times enlarged.
// Characters outside ASCII (UTF-8) become a box each.
void draw_text(Image& image, int64_t x, int64_t y, std::string_view text, Colour colour, int scale = 1);

int64_t text_width(std::string_view text, int scale = 1);
int64_t text_height(int scale = 1);

// The text, or as many of its first letters as fit `width` together with "...".
std::string shorten_text(std::string_view text, int64_t width, int scale = 1);

}  // namespace tandem
