// The operations of augmentation as they are defined, on one image of floats with fixed arguments: what the
// fast 8-bit paths are held to, and what to call for a single image.
#pragma once

#include <vector>

#include "tandem/augment/draw.h"

namespace tandem {

// (height, width, channels), row-major; full scale is 1.
struct FloatImage {
  ImageSize size;
  std::vector<float> values;
};

// About the centre, counter-clockwise, size kept, 0 outside: scipy.ndimage.rotate(image, degrees,
// reshape=False, order=0|1|3). Degrees within ±36000.
FloatImage rotate(const FloatImage& image, double degrees,
                  Interpolation interpolation = Interpolation::linear);

// The content moves dx pixels to the left and dy upwards; what comes in is 0.
FloatImage shift(const FloatImage& image, int dx, int dy);

// out[y][x] = in[y][x + ⌊y · tilt⌋], outside 0.
FloatImage skew(const FloatImage& image, double tilt);

// Each value gets its own draw from [−amount, amount], then is clipped to 0 … 1. Value i takes 16 bits of
// block 1 + i / 8 of the key, so the 8-bit paths add the same noise.
FloatImage add_noise(const FloatImage& image, double amount, const DrawKey& key);

}  // namespace tandem
