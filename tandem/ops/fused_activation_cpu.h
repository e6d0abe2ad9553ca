// The fused activations that product tiles leave to a second pass over values that are still in cache.
#pragma once

#include <cstdint>

#include "tandem/ops/activation_cpu.h"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail {

// Applies SiLU or hardswish to `count` values in place; nothing for none and ReLU. Inlined, so that it is
// compiled for the vectors of its caller.
template <class T>
[[gnu::always_inline]] inline void activate_row(FusedActivation activation, T* __restrict values,
                                                std::int64_t count) {
  if (activation == FusedActivation::silu)
    for (std::int64_t i = 0; i < count; ++i) values[i] = Silu<Backend::cpu>{}(values[i]);
  else if (activation == FusedActivation::hardswish)
    for (std::int64_t i = 0; i < count; ++i) values[i] = Hardswish{}(values[i]);
}

}  // namespace tandem::detail
