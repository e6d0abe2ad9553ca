// Kernel of normalize_images (normalize.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/stream.h"
#include "tandem/ops/normalize.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// A pixel p of channel c becomes p · scale[c] + shift[c].
struct ChannelAffine {
  float scale[max_image_channels];
  float shift[max_image_channels];
};

template <Backend B>
void normalize_kernel(DType dtype, std::int64_t pixels, int channels, const ChannelAffine& affine,
                      std::byte* out, const std::uint8_t* images, StreamView stream);

}  // namespace tandem::detail
