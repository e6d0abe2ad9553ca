// Contact sheets: several images in a grid on white, each with its label below.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/image/image.h"

namespace tandem {

/// What a label says about its image: shown as a green or red frame and text.
enum class SheetMark { none, right, wrong };

/// An image and the text shown below it.
struct LabeledImage {
  Image image;
  std::string label;
  SheetMark mark = SheetMark::none;
};

/// The layout of a contact sheet; lengths are in pixels.
struct SheetOptions {
  int64_t columns = 0;  ///< 0 picks a grid that is about square
  int64_t cell_width = 320;
  int64_t cell_height = 320;  ///< the maximum: a row is as high as its highest image
  int64_t margin = 20;
  int text_scale = 2;
  bool integer_scale = false;  ///< enlarge by integer factors only, so that all pixels have the same size
};

/// Renders the images as one RGB sheet. Each image is scaled to fit its cell with its aspect ratio kept. A
/// label may have several lines; a line too long for its cell is shortened with "...". Throws Error for no
/// images, an empty image or options out of range.
Image contact_sheet(std::span<const LabeledImage> images, const SheetOptions& options = {});

}  // namespace tandem
