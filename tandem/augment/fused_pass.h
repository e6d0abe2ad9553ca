// Runs one fused pass of a recipe over an image (FusedPass in arguments.h explains passes), for any size and
// number of channels, in plain scalar code. The SIMD and CUDA versions give the same bits.
#pragma once

#include <cstdint>

#include "tandem/augment/arguments.h"
#include "tandem/augment/augment.h"

namespace tandem::detail {

struct FusedPassParams {
  const Recipe* recipe = nullptr;
  FusedPass pass;
  const SampledStep* steps = nullptr;  // of the complete recipe
  ImageSize size;
  RandomKey key;  // its operation is ignored
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;  // may not overlap `in`
};

// The random key of operation i.
inline RandomKey key_of(const FusedPassParams& params, int i) {
  RandomKey key = params.key;
  key.operation = static_cast<std::uint32_t>(i);
  return key;
}

void run_fused_pass(const FusedPassParams& params, AugmentScratch& scratch);

// Parts of it that the SIMD version shares. Everything except the noise:
void move_and_resample(const FusedPassParams& params, AugmentScratch& scratch);
// What the pass resamples: `in`, or a scratch image if moves come before.
const std::uint8_t* moved_source(const FusedPassParams& params, AugmentScratch& scratch);

}  // namespace tandem::detail
