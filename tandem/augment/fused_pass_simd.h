// run_fused_pass() with the same bits in SIMD: linear interpolation (rotate, zoom, crop) of small images with
// one channel, and noise for all images. Everything else uses the code of fused_pass.h.
#pragma once

#include "tandem/augment/fused_pass.h"

namespace tandem::detail {

void run_fused_pass_simd(const FusedPassParams& params, AugmentScratch& scratch);

}  // namespace tandem::detail
