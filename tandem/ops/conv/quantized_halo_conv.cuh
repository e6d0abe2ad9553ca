// 3×3 convolutions of 8-bit images with 64 channels and 64 filters on Hopper's tensor cores, for which copies
// of the image for every tap would take longer than the products: one copy is enough for all of them.
#pragma once

#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {

// The weight is packed as for quantized_tile_conv2d(). False, without a result, for other convolutions, and
// where boxes of 8×8 pixels would be too much larger than the result.
bool quantized_halo_conv2d(const QuantizedTask& task, StreamView stream);

}  // namespace tandem::detail
