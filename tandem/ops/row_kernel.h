// Building blocks of row-wise operations on the CPU (softmax, cross-entropy): rows are read in blocks,
// reduced in an order that depends only on their length, and split over the threads. row_kernel.cuh is the
// CUDA counterpart.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/vector_math.h"

namespace tandem::detail::row_ops {

// Rows are processed in blocks that stay in the L1 cache. Sums within a block are in the compute type, sums
// over blocks in f64. A block is reduced with `accumulators` independent accumulators, which lets the
// compiler vectorize and gives the same bits for every vector width.
inline constexpr std::int64_t block_size = 256;
inline constexpr int accumulators = 16;

template <class C>
[[gnu::always_inline]] inline C exponential(C value) {
  if constexpr (std::same_as<C, float>)
    return vector_exp(value);
  else
    return std::exp(value);
}

// Loads up to a block of elements in the compute type.
template <class C, class T>
[[gnu::always_inline]] inline void load(C* to, const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<C>(from[i]);
}

// Reduces `count` elements (at least 1) of a block; overwrites its unused end with `neutral`.
template <class C, class F>
[[gnu::always_inline]] inline C reduce_block(C* values, std::int64_t count, C neutral, F f) {
  for (; count % accumulators != 0; ++count) values[count] = neutral;
  C partial[accumulators];
  for (int k = 0; k < accumulators; ++k) partial[k] = values[k];
  for (std::int64_t i = accumulators; i < count; i += accumulators)
    for (int k = 0; k < accumulators; ++k) partial[k] = f(partial[k], values[i + k]);
  for (int width = accumulators / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) partial[k] = f(partial[k], partial[k + width]);
  return partial[0];
}

struct Max {
  template <class C>
  constexpr C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};
struct Sum {
  template <class C>
  constexpr C operator()(C a, C b) const {
    return a + b;
  }
};

// Calls f(begin, count) for each block of a row.
template <class F>
[[gnu::always_inline]] inline void for_each_block(std::int64_t columns, F&& f) {
  for (std::int64_t begin = 0; begin < columns; begin += block_size)
    f(begin, std::min(block_size, columns - begin));
}

// Calls f(row) for every row, in parallel.
template <class F>
void for_each_row(std::int64_t rows, std::int64_t columns, F&& f) {
  parallel_for(rows, std::max<std::int64_t>((1 << 12) / columns, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   for (std::int64_t row = begin; row < end; ++row) f(row);
                 });
               });
}

}  // namespace tandem::detail::row_ops
