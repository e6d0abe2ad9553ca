// The mask of inverted dropout, a function of (seed, layer, step, element). The step counter lives on the
// device, so a captured training step samples a new mask on every replay.
#pragma once

#include <cstdint>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of dropout_mask().
struct DropoutOptions {
  double probability = 0.5;  ///< of dropping an element, in [0, 1)
  std::uint64_t seed = 0;    ///< of the random numbers
  std::uint32_t layer = 0;   ///< gives each layer of a network its own random numbers
  DType dtype = DType::f32;  ///< of the mask; f32, f64 or bf16
  std::int64_t first_element =
      0;  ///< the number of the first element, where other masks hold those before it
};

/// A mask on the device of `step`: 0 where an element is dropped, 1 / (1 − probability) elsewhere. `step` is
/// one i64, which is read and then incremented. The same bits on every device. Throws Error for a probability
/// outside [0, 1), an integer dtype or more than 2³⁴ elements.
Tensor dropout_mask(const Shape& shape, Tensor& step, const DropoutOptions& options);

}  // namespace tandem
