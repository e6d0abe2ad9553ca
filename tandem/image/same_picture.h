// Whether two images show the same picture, at any sizes.
#pragma once

#include "tandem/image/image.h"

namespace tandem {

// The side of the images that is_same_picture() compares.
inline constexpr int64_t compared_side = 64;

// Whether two RGB images of compared_side x compared_side, made from whole images, show the same picture but
// for compression noise and up to 4 % that was cut off at each side. One is moved and stretched onto the
// other first, so that what remains is a difference of content. Throws Error for images of other sizes.
bool is_same_picture(const Image& a, const Image& b);

}  // namespace tandem
