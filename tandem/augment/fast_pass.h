// run_pass() to the same bits, in SIMD: linear rotation of small images with one channel, and noise for
// images of any kind. The rest it leaves to run_pass()'s parts.
#pragma once

#include "tandem/augment/pass.h"

namespace tandem {

void run_fast_pass(const PassWork& work, AugmentScratch& scratch);

}  // namespace tandem
