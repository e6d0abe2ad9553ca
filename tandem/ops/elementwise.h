// The CPU loop of element-wise operations: applies a functor to up to three inputs of any layout, vectorized
// where memory is dense and split over the threads. elementwise.cuh is the CUDA counterpart. bf16 is computed
// in f32. Functors are named types with a constexpr call operator, so that both backends share them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tandem/core/convert.h"
#include "tandem/core/dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

// One run of the innermost axis. `step` holds the strides of the output and the inputs; testing for known
// strides lets the compiler vectorize.
template <class F, class Out, class... In, std::size_t... I>
[[gnu::always_inline]] inline void elementwise_run(F f, Out* __restrict out, const std::int64_t* step,
                                                   std::int64_t count, std::index_sequence<I...>,
                                                   const In*... in) {
  const bool dense = step[0] == 1 && ((step[I + 1] == 1) && ...);
  if (dense) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert<Out>(f(convert<ComputeType<In>>(in[i])...));
    return;
  }
  if constexpr (sizeof...(In) == 2) {  // a row and a scalar: the other common case
    const bool first_dense = step[0] == 1 && step[1] == 1 && step[2] == 0;
    const bool second_dense = step[0] == 1 && step[1] == 0 && step[2] == 1;
    if (first_dense || second_dense) {
      [&](const auto* a, const auto* b) __attribute__((always_inline)) {
        if (first_dense) {
          const auto value = convert<ComputeType<std::remove_cvref_t<decltype(*b)>>>(*b);
          for (std::int64_t i = 0; i < count; ++i)
            out[i] = convert<Out>(f(convert<ComputeType<std::remove_cvref_t<decltype(*a)>>>(a[i]), value));
        } else {
          const auto value = convert<ComputeType<std::remove_cvref_t<decltype(*a)>>>(*a);
          for (std::int64_t i = 0; i < count; ++i)
            out[i] = convert<Out>(f(value, convert<ComputeType<std::remove_cvref_t<decltype(*b)>>>(b[i])));
        }
      }
      (in...);
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i)
    out[i * step[0]] = convert<Out>(f(convert<ComputeType<In>>(in[i * step[I + 1]])...));
}

// out[…] = f(in[…], …) over the layout, whose operand 0 is the output.
template <class F, class Out, class... In>
void elementwise_cpu(F f, const Layout<1 + sizeof...(In)>& layout, Out* out, const In*... in) {
  constexpr int operands = 1 + sizeof...(In);
  constexpr std::int64_t grain = 1 << 14;
  std::int64_t step[operands];
  for (int k = 0; k < operands; ++k) step[k] = layout.strides[k][layout.rank - 1];
  parallel_for(layout.numel, grain, [&](std::int64_t begin, std::int64_t end) {
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for_each_run(
          layout, begin, end, [&](const auto& offset, std::int64_t count) __attribute__((always_inline)) {
            [&]<std::size_t... I>(std::index_sequence<I...> inputs) __attribute__((always_inline)) {
              elementwise_run(f, out + offset[0], step, count, inputs, (in + offset[I + 1])...);
            }
            (std::index_sequence_for<In...>{});
          });
    });
  });
}

}  // namespace tandem::detail
