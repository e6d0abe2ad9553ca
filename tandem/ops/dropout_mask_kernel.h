// Kernel of dropout_mask (dropout_mask.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/philox.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Element i is dropped if word i % 4 of random block i / 4 is below `threshold`.
struct DropoutSampler {
  std::uint64_t seed;
  std::uint32_t layer;
  std::uint64_t threshold;  // probability · 2³²
  double kept_value;

  constexpr Words4 words(std::int64_t step, std::int64_t block) const {
    return RandomKey{
        .seed = seed, .epoch = static_cast<std::uint32_t>(step), .sample = layer, .operation = 0x44524F50}
        .block(static_cast<std::uint32_t>(block));
  }
};

// The mask holds elements [first, last); first < last, or there is nothing to write.
struct ElementRange {
  std::int64_t first;
  std::int64_t last;
};

template <Backend B>
void dropout_mask_kernel(const DropoutSampler& sampler, DType dtype, std::byte* out, ElementRange elements,
                         std::int64_t* step, StreamView stream);

}  // namespace tandem::detail
