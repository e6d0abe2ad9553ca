// Resizing by area averaging: every output pixel is the mean of the input area it covers. Meant for reducing;
// when enlarging, pixels become squares. (Training transforms use resize(), which equals PIL's.)
#pragma once

#include "tandem/image/image.h"

namespace tandem {

Image resize_area(const Image& image, int64_t height, int64_t width);

}  // namespace tandem
