// Filters on photographs: edges by gradients, blurs, or any kernel. A gradient filter F gives sqrt(Gx² + Gy²)
// with Gx = correlate(grey, F) and Gy = correlate(grey, Fᵀ); a plain one is a single correlation. The result
// is scaled so that its least value is black and its greatest white.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tandem/device/device.h"
#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct PhotoFilter {
  std::string name;
  Tensor kernel;  // f32, on the CPU
  bool gradient = false;
};

// sobel1, sobel2, sobel3, sobel4 (gradients) and ring (a blur).
std::span<const PhotoFilter> builtin_filters();
// Error for a name that is none.
const PhotoFilter& builtin_filter(std::string_view name);

// "1 0 -1; 2 0 -2; 1 0 -1": rows apart by semicolons, numbers by spaces or commas.
PhotoFilter parse_filter(std::string_view kernel, bool gradient);

// The filter's values, before they are scaled to an image.
Tensor filter_response(const Tensor& grey, const PhotoFilter& filter);

// A grey image of the photograph's size, computed on `device`.
Image apply_filter(const Image& photo, const PhotoFilter& filter, Device device = cpu_device);

// The photograph and every built-in filter on one labelled sheet.
Image filter_sheet(const Image& photo, Device device = cpu_device);

}  // namespace tandem
