// The arithmetic of an optimiser's step for one weight, written once: the fused optimisers and the fast paths
// of training, on either device, all call it, on numbers or on SIMD vectors of them. The formulas and the
// order of their roundings are PyTorch's.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tandem {

enum class OptimizerKind { sgd, adam, adamw };

struct UpdateOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0;  // sgd
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw

  // Numbers kept for each weight between steps.
  constexpr int state_count() const { return kind == OptimizerKind::sgd ? (momentum != 0 ? 1 : 0) : 2; }
};

// What one step needs, worked out once for all weights. T is float or double.
template <class T>
struct UpdateNumbers {
  T rate;        // what the direction is multiplied with
  T decay;       // added to the gradient: decay · w
  T shrink;      // w is multiplied with it first (adamw)
  T momentum;    // sgd: momentum; adam: beta1
  T beta2;       // adam
  T root_scale;  // adam: 1 / √(1 − beta2ᵗ)
  T epsilon;     // adam
};

// `step` counts from 1.
template <class T>
UpdateNumbers<T> update_numbers(const UpdateOptions& options, double learning_rate, std::int64_t step) {
  UpdateNumbers<T> numbers{.rate = static_cast<T>(learning_rate),
                           .decay = static_cast<T>(options.weight_decay),
                           .shrink = T{1},
                           .momentum = static_cast<T>(options.momentum),
                           .beta2 = T{0},
                           .root_scale = T{1},
                           .epsilon = T{0}};
  if (options.kind == OptimizerKind::sgd) return numbers;
  if (options.kind == OptimizerKind::adamw) {
    numbers.shrink = static_cast<T>(1 - learning_rate * options.weight_decay);
    numbers.decay = T{0};
  }
  const auto t = static_cast<double>(step);
  numbers.rate = static_cast<T>(learning_rate / (1 - std::pow(options.beta1, t)));
  numbers.momentum = static_cast<T>(options.beta1);
  numbers.beta2 = static_cast<T>(options.beta2);
  numbers.root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
  numbers.epsilon = static_cast<T>(options.epsilon);
  return numbers;
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

// The rules: w and the states are changed in place; unused states are ignored.
struct SgdRule {
  static constexpr int states = 0;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V&, V&, const UpdateNumbers<T>& n) const {
    w = w - n.rate * (g + n.decay * w);
  }
};
struct MomentumRule {
  static constexpr int states = 1;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& velocity, V&,
                                                   const UpdateNumbers<T>& n) const {
    velocity = n.momentum * velocity + (g + n.decay * w);
    w = w - n.rate * velocity;
  }
};
struct NesterovRule {
  static constexpr int states = 1;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& velocity, V&,
                                                   const UpdateNumbers<T>& n) const {
    g = g + n.decay * w;
    velocity = n.momentum * velocity + g;
    w = w - n.rate * (g + n.momentum * velocity);
  }
};
struct AdamRule {
  static constexpr int states = 2;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& mean, V& square,
                                                   const UpdateNumbers<T>& n) const {
    g = g + n.decay * w;
    mean = n.momentum * mean + (1 - n.momentum) * g;
    square = n.beta2 * square + (1 - n.beta2) * g * g;
    w = n.shrink * w - n.rate * (mean / (lanewise_sqrt(square) * n.root_scale + n.epsilon));
  }
};

// f(rule) for the rule the options name.
template <class F>
constexpr auto on_update_rule(const UpdateOptions& options, F&& f) {
  if (options.kind != OptimizerKind::sgd) return f(AdamRule{});
  if (options.momentum == 0) return f(SgdRule{});
  return options.nesterov ? f(NesterovRule{}) : f(MomentumRule{});
}

}  // namespace tandem
