// The arithmetic of an optimizer step for one weight, on scalars or SIMD vectors. The fused optimizers and
// the training engines share it on both devices, so they give the same bits. Formulas and rounding order are
// PyTorch's.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tandem/optim/optimizer_options.h"

namespace tandem::detail {

// The constants of one step, computed once for all weights. T is float or double.
template <class T>
struct StepHyperparameters {
  T rate;        // multiplies the update direction
  T decay;       // L2 term: decay · w is added to the gradient
  T shrink;      // adamw: w is first multiplied by it
  T momentum;    // sgd: momentum; adam, adamw: beta1
  T beta2;       // adam
  T root_scale;  // adam: 1 / √(1 − beta2ᵗ)
  T epsilon;     // adam
};

// `step` counts from 1.
template <class T>
StepHyperparameters<T> step_hyperparameters(const OptimizerOptions& options, double learning_rate,
                                            std::int64_t step) {
  StepHyperparameters<T> values{.rate = static_cast<T>(learning_rate),
                                .decay = static_cast<T>(options.weight_decay),
                                .shrink = T{1},
                                .momentum = static_cast<T>(options.momentum),
                                .beta2 = T{0},
                                .root_scale = T{1},
                                .epsilon = T{0}};
  if (options.kind == OptimizerKind::sgd) return values;
  if (options.kind == OptimizerKind::adamw) {
    values.shrink = static_cast<T>(1 - learning_rate * options.weight_decay);
    values.decay = T{0};
  }
  const auto t = static_cast<double>(step);
  values.rate = static_cast<T>(learning_rate / (1 - std::pow(options.beta1, t)));
  values.momentum = static_cast<T>(options.beta1);
  values.beta2 = static_cast<T>(options.beta2);
  values.root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
  values.epsilon = static_cast<T>(options.epsilon);
  return values;
}

template <class V>
[[gnu::always_inline]] constexpr V lanewise_sqrt(V value) {
  if constexpr (std::is_arithmetic_v<V>) {
    return std::sqrt(value);
  } else {
    for (std::size_t lane = 0; lane < sizeof(V) / sizeof(value[0]); ++lane)
      value[lane] = std::sqrt(value[lane]);
    return value;
  }
}

// The rules update w and its states in place; unused states are ignored.
struct SgdRule {
  static constexpr int states = 0;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V&, V&, const StepHyperparameters<T>& n) const {
    w = w - n.rate * (g + n.decay * w);
  }
};
struct MomentumRule {
  static constexpr int states = 1;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& velocity, V&,
                                                   const StepHyperparameters<T>& n) const {
    velocity = n.momentum * velocity + (g + n.decay * w);
    w = w - n.rate * velocity;
  }
};
struct NesterovRule {
  static constexpr int states = 1;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& velocity, V&,
                                                   const StepHyperparameters<T>& n) const {
    g = g + n.decay * w;
    velocity = n.momentum * velocity + g;
    w = w - n.rate * (g + n.momentum * velocity);
  }
};
struct AdamRule {
  static constexpr int states = 2;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& mean, V& square,
                                                   const StepHyperparameters<T>& n) const {
    g = g + n.decay * w;
    mean = n.momentum * mean + (1 - n.momentum) * g;
    square = n.beta2 * square + (1 - n.beta2) * g * g;
    w = n.shrink * w - n.rate * (mean / (lanewise_sqrt(square) * n.root_scale + n.epsilon));
  }
};

// Calls f with the rule that the options select.
template <class F>
constexpr auto on_update_rule(const OptimizerOptions& options, F&& f) {
  if (options.kind != OptimizerKind::sgd) return f(AdamRule{});
  if (options.momentum == 0) return f(SgdRule{});
  return options.nesterov ? f(NesterovRule{}) : f(MomentumRule{});
}

}  // namespace tandem::detail
