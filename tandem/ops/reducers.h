// Reducers shared by the CPU and CUDA: `fold` adds one element and its index to a state, `merge` combines the
// states of two disjoint parts, `finish` gives the result. Sums are accumulated in f64 (i64 for integers), so
// that an f32 or bf16 sum is rounded once. argmax prefers NaN, then the larger value, then the lower index,
// so merging does not depend on the order.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/reduce_kernel.h"

namespace tandem::detail {

template <class T>
struct SumReducer {
  using State = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  using Result = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
  static constexpr State initial() { return 0; }
  static constexpr State fold(State state, T value, std::int64_t) {
    return state + static_cast<State>(convert<ComputeType<T>>(value));
  }
  static constexpr State merge(State a, State b) { return a + b; }
  static constexpr Result finish(State state) { return convert<Result>(state); }
};

template <class T>
struct ArgmaxReducer {
  struct State {
    ComputeType<T> value;
    std::int64_t index;  // −1: no element yet
  };
  using Result = std::int64_t;
  static constexpr bool is_greater(ComputeType<T> a, ComputeType<T> b) { return a > b || (a != a && b == b); }
  static constexpr State initial() { return {{}, -1}; }
  // Indices are ascending, so an equal value never replaces the state.
  static constexpr State fold(State state, T element, std::int64_t index) {
    const auto value = convert<ComputeType<T>>(element);
    return state.index < 0 || is_greater(value, state.value) ? State{value, index} : state;
  }
  static constexpr State merge(State a, State b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool tie = !is_greater(a.value, b.value) && !is_greater(b.value, a.value);
    return is_greater(b.value, a.value) || (tie && b.index < a.index) ? b : a;
  }
  static constexpr Result finish(State state) { return state.index; }
};

template <class T>
struct MaxReducer : ArgmaxReducer<T> {
  using Result = T;
  static constexpr Result finish(typename ArgmaxReducer<T>::State state) { return convert<T>(state.value); }
};

// Calls f with the reducer of `reduction`.
template <class T, class F>
void on_reduction(Reduction reduction, F&& f) {
  switch (reduction) {
    case Reduction::sum:
      return f(SumReducer<T>{});
    case Reduction::max:
      return f(MaxReducer<T>{});
    case Reduction::argmax:
      return f(ArgmaxReducer<T>{});
  }
}

}  // namespace tandem::detail
