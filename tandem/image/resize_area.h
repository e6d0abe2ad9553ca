// Resizing by area: every new pixel is the mean of what it covers. Right for making smaller; when enlarging,
// pixels become squares. (The training transforms have their own resize, equal to PIL's.)
#pragma once

#include "tandem/image/image.h"

namespace tandem {

Image resize_area(const Image& image, int64_t height, int64_t width);

}  // namespace tandem
