// The kernels behind image_scale.h. Factors, means and sums are in the compute type of the plan's dtype.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Kernels are called with sizes > 0 only.
struct ImageScalePlan {
  std::int64_t images = 0;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  DType dtype = DType::f32;
};

// sums (images, channels): Σ a · b over the pixels of an image, times `factor`. Without b, Σ a.
struct ImageSums {
  std::byte* sums;
  const std::byte* a;
  const std::byte* b;  // may be null
  double factor;
};

// y = x · factors + shift · shift_factor + residual. Factors are (images, channels), or (images) unless
// `per_channel`; shift is (images, channels).
struct ImageScale {
  std::byte* y;
  const std::byte* x;
  const std::byte* factors;
  bool per_channel;
  const std::byte* shift;  // may be null
  double shift_factor;
  const std::byte* residual;  // may be null
};

template <Backend B>
void image_sums_kernel(const ImageScalePlan& plan, const ImageSums& args, StreamView stream);
template <Backend B>
void image_scale_kernel(const ImageScalePlan& plan, const ImageScale& args, StreamView stream);

}  // namespace tandem::detail
