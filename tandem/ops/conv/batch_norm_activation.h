// The gradient of the activation that is fused to a batch norm, on the CPU.
#pragma once

#include "tandem/core/convert.h"
#include "tandem/ops/conv/batch_norm_kernel.h"
#include "tandem/ops/fused_activation_cpu.h"

namespace tandem::detail {

// What the gradient of the activation is computed from, in one row.
template <class T, class C>
struct ActivationRow {
  const T* __restrict dy;
  const T* __restrict x;  // needed where needs_argument()
  const T* __restrict y;  // needed with a ReLU
  const C* mean;
  const C* scale;
  const C* bias;

  // Calls f(gradient), where gradient(c) is dy after the gradient of the activation.
  template <class F>
  [[gnu::always_inline]] void on_gradient(FusedActivation activation, const F& f) const {
    const auto through = [&]<FusedActivation a>() __attribute__((always_inline)) {
      f([&](std::int64_t c) __attribute__((always_inline)) {
        const C argument = (convert<C>(x[c]) - mean[c]) * scale[c] + bias[c];
        return activation_gradient<Backend::cpu, a>(convert<C>(dy[c]), argument);
      });
    };
    switch (activation) {
      case FusedActivation::none:
        return f([&](std::int64_t c) __attribute__((always_inline)) { return convert<C>(dy[c]); });
      case FusedActivation::relu:
        // dy is read in every case: GCC 12 does not vectorize a load of bf16 that depends on a condition.
        return f([&](std::int64_t c) __attribute__((always_inline)) {
          const C gradient = convert<C>(dy[c]);
          return convert<C>(y[c]) <= 0 ? C{0} : gradient;
        });
      case FusedActivation::silu:
        return through.template operator()<FusedActivation::silu>();
      case FusedActivation::hardswish:
        return through.template operator()<FusedActivation::hardswish>();
    }
  }
};

// The rows of `args`; `scale` is weight · inverse deviation.
template <class T, class C>
[[gnu::always_inline]] inline ActivationRow<T, C> activation_row(const BatchNormPlan& plan,
                                                                 const BatchNormBackward& args,
                                                                 const C* scale, std::int64_t row) {
  const auto at = [&](const std::byte* values) __attribute__((always_inline)) {
    return reinterpret_cast<const T*>(values) + row * plan.channels;
  };
  const FusedActivation activation = plan.options.activation;
  return {at(args.dy),
          needs_argument(activation) ? at(args.x) : nullptr,
          activation == FusedActivation::relu ? at(args.y) : nullptr,
          reinterpret_cast<const C*>(args.mean),
          scale,
          reinterpret_cast<const C*>(args.bias)};
}

// weight · inverse deviation.
template <class C>
void write_scale(const BatchNormPlan& plan, const BatchNormBackward& args, C* scale) {
  for (std::int64_t c = 0; c < plan.channels; ++c)
    scale[c] =
        reinterpret_cast<const C*>(args.weight)[c] * reinterpret_cast<const C*>(args.inverse_deviation)[c];
}

}  // namespace tandem::detail
