// The functors of the fused activations (fused_activation.h). The gradient of ReLU follows from the sign of
// its result; the others need their argument.
#pragma once

#include "tandem/ops/activation_kernel.h"
#include "tandem/ops/fused_activation.h"

namespace tandem::detail {

// Whether the gradient needs the argument of the activation, not only its result.
constexpr bool needs_argument(FusedActivation activation) {
  return activation == FusedActivation::silu || activation == FusedActivation::hardswish;
}

template <Backend B, FusedActivation activation, class T>
[[gnu::always_inline]] constexpr T activate_value(T x) {
  if constexpr (activation == FusedActivation::relu)
    return Relu{}(x);
  else if constexpr (activation == FusedActivation::silu)
    return Silu<B>{}(x);
  else if constexpr (activation == FusedActivation::hardswish)
    return Hardswish{}(x);
  else
    return x;
}

// g times the slope at x.
template <Backend B, FusedActivation activation, class T>
[[gnu::always_inline]] constexpr T activation_gradient(T g, T x) {
  if constexpr (activation == FusedActivation::relu)
    return ReluGradient{}(g, x);
  else if constexpr (activation == FusedActivation::silu)
    return SiluGradient<B>{}(g, x);
  else if constexpr (activation == FusedActivation::hardswish)
    return HardswishGradient{}(g, x);
  else
    return g;
}

// Calls f.operator()<activation>().
template <class F>
[[gnu::always_inline]] inline void on_fused_activation(FusedActivation activation, F&& f) {
  switch (activation) {
    case FusedActivation::none:
      return f.template operator()<FusedActivation::none>();
    case FusedActivation::relu:
      return f.template operator()<FusedActivation::relu>();
    case FusedActivation::silu:
      return f.template operator()<FusedActivation::silu>();
    case FusedActivation::hardswish:
      return f.template operator()<FusedActivation::hardswish>();
  }
}

}  // namespace tandem::detail
