// Filters for photographs: edge detection, blur, or any kernel. A gradient filter F gives sqrt(Gx² + Gy²)
// with Gx = correlate(gray, F) and Gy = correlate(gray, Fᵀ); any other filter is a single correlation. The
// result is scaled so that its minimum is black and its maximum white.
#pragma once

#include <string>
#include <string_view>

#include "tandem/core/registry.h"
#include "tandem/device/device.h"
#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct PhotoFilter {
  std::string name;
  std::string summary;
  Tensor kernel;  // f32, on the CPU
  bool gradient = false;
};

// sobel1, sobel2, sobel3, sobel4 (gradients) and ring (blur).
const Registry<PhotoFilter>& builtin_filters();

// Parses "1 0 -1; 2 0 -2; 1 0 -1": semicolons separate rows, spaces or commas separate numbers. Throws Error
// for any other text.
PhotoFilter parse_filter(std::string_view kernel, bool gradient);

// The filter response before it is scaled to an image.
Tensor filter_response(const Tensor& gray, const PhotoFilter& filter);

// The unscaled values for a photograph: (height, width) in f32, computed on `device`.
Tensor filter_values(const Image& photo, const PhotoFilter& filter, Device device = cpu_device);

// A gray image of the photograph's size, computed on `device`.
Image apply_filter(const Image& photo, const PhotoFilter& filter, Device device = cpu_device);

// The photograph and every built-in filter on one labeled sheet.
Image filter_sheet(const Image& photo, Device device = cpu_device);

}  // namespace tandem
