// The mask of inverted dropout, a function of (seed, layer, step, element). The step is counted on the
// device, so that a captured training step draws a new mask each time it is replayed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/philox.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct DropoutOptions {
  double probability = 0.5;  // that an element is dropped, in [0, 1)
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // layers of one network draw apart
  DType dtype = DType::f32;
};

// 0 where an element is dropped, 1 / (1 − probability) elsewhere, on the device of `step`: an i64 of shape
// [], which is read and then counted up by one. The same bits on every device. At most 2³⁴ elements.
Tensor dropout_mask(const Shape& shape, const Tensor& step, const DropoutOptions& options);

// Whether element i is kept is word i % 4 of block i / 4 against a threshold.
struct MaskDraw {
  std::uint64_t seed;
  std::uint32_t layer;
  std::uint64_t threshold;  // probability · 2³²
  double kept;

  constexpr Words4 words(std::int64_t step, std::int64_t block) const {
    return DrawKey{
        .seed = seed, .epoch = static_cast<std::uint32_t>(step), .sample = layer, .operation = 0x44524F50}
        .block(static_cast<std::uint32_t>(block));
  }
};

template <Backend B>
void dropout_mask_kernel(const MaskDraw& draw, DType dtype, std::byte* out, std::int64_t count,
                         std::int64_t* step, StreamView stream);

}  // namespace tandem
