// The activations that batch norms and convolutions apply in the pass that writes their result.
#pragma once

#include <cstdint>

namespace tandem {

/// Applied to the result of batch_norm() and of ConvNorm in the same pass over memory.
enum class FusedActivation : std::uint8_t { none, relu, silu, hardswish };

}  // namespace tandem
