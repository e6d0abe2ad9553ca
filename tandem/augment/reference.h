// The augmentation operations on a single image of floats with given arguments. They are the definitions with
// which the tests compare the fast 8-bit versions.
#pragma once

#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/core/philox.h"
#include "tandem/image/image.h"

namespace tandem {

/// An image of floats, (height, width, channels) in row-major order; full scale is 1. All functions below
/// throw Error if the number of values does not match the size.
struct FloatImage {
  ImageSize size;
  std::vector<float> values;
};

/// Rotates counterclockwise about the center, keeping the size; outside is 0. Equals
/// scipy.ndimage.rotate(image, degrees, reshape=False, order=0|1|3). Throws Error for degrees beyond ±36000.
FloatImage rotate(const FloatImage& image, double degrees,
                  Interpolation interpolation = Interpolation::linear);

/// Moves the content dx pixels to the left and dy upwards; what comes in is 0.
FloatImage shift(const FloatImage& image, int dx, int dy);

/// The same, but what comes in mirrors the image at its border: numpy.pad(image, mode="reflect"), cropped.
FloatImage reflected_shift(const FloatImage& image, int dx, int dy);

/// out[y][x] = in[y][x + ⌊y · tilt⌋]; outside is 0. Throws Error for a tilt that is not finite.
FloatImage skew(const FloatImage& image, double tilt);

/// Adds an independent uniform value from [−amount, amount] to each value, then clips to 0 … 1. Value i uses
/// 16 bits of block 1 + i / 8 of the key, so that the 8-bit versions add the same noise. Throws Error for an
/// amount outside 0 … 1.
FloatImage add_noise(const FloatImage& image, double amount, const RandomKey& key);

/// Enlarges (a factor above 1) or reduces the content about the center, keeping the size; outside is 0.
/// Equals scipy.ndimage.affine_transform(image, [1/factor, 1/factor], center − center/factor, order=0|1|3).
/// Throws Error for a factor outside 0.25 … 100.
FloatImage zoom(const FloatImage& image, double factor, Interpolation interpolation = Interpolation::linear);

/// The box that has `fraction` of the area and the image's aspect ratio, enlarged to the image's size by
/// linear interpolation. `left` and `top` are the parts of the remaining width and height before the box:
/// 0 … 1. Each corner pixel of the result is at a corner of the box. Throws Error for a fraction outside
/// 1e-6 … 1, and for positions outside 0 … 1.
FloatImage crop(const FloatImage& image, double fraction, double left, double top);

/// Mirrors horizontally: out[y][x] = in[y][width − 1 − x].
FloatImage flip(const FloatImage& image);

/// The correlation with the kernel, scipy.signal.convolve2d(image, kernel[::-1, ::-1], mode="same"), or for a
/// gradient the magnitude of the correlations with the kernel and its transpose, divided by the sum of the
/// positive weights and clipped to 0 … 1; outside is 0. Throws Error for a kernel that compose() refuses.
FloatImage blur(const FloatImage& image, const BlurKernel& kernel);

}  // namespace tandem
