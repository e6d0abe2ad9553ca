// Many pictures on one: a grid on white, each with its label beneath.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/image/image.h"

namespace tandem {

struct LabelledImage {
  Image image;
  std::string label;
};

struct SheetOptions {
  int64_t columns = 0;  // 0 picks a grid about as wide as a page
  int64_t cell_width = 320;
  int64_t cell_height = 320;  // at most: rows are as high as their highest picture
  int64_t margin = 20;
  int text_scale = 2;
  bool whole_factors = false;  // enlarge by whole factors only: every pixel is a square of the same size
};

// Pictures are fitted into their cells with their aspect kept, enlarged where they are smaller. A label may
// have several lines; those too long for their cell are shortened with "...". The sheet is RGB.
Image contact_sheet(std::span<const LabelledImage> images, const SheetOptions& options = {});

}  // namespace tandem
