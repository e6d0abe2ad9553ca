// The loops under operations on rows on the CPU (softmax, cross-entropy): rows are read in blocks, folded in
// an order that depends on their length alone, and split over the team. row_warps.cuh is the same for CUDA.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/vector_math.h"

namespace tandem::blocks {

// Rows are worked on in blocks that stay in the first cache; sums within a block are in the compute type,
// over blocks in f64. A block is cut into `parts` separate sums, which lets the compiler vectorise and gives
// the same bits whatever the vectors' width.
inline constexpr std::int64_t block = 256;
inline constexpr int parts = 16;

template <class C>
[[gnu::always_inline]] inline C exponential(C value) {
  if constexpr (std::same_as<C, float>)
    return vector_exp(value);
  else
    return std::exp(value);
}

// Up to a block of elements in the compute type.
template <class C, class T>
[[gnu::always_inline]] inline void load(C* to, const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<C>(from[i]);
}

// Folds `count` elements (at least 1) of a block, whose unused end is overwritten with `neutral`.
template <class C, class F>
[[gnu::always_inline]] inline C fold_block(C* values, std::int64_t count, C neutral, F f) {
  for (; count % parts != 0; ++count) values[count] = neutral;
  C part[parts];
  for (int k = 0; k < parts; ++k) part[k] = values[k];
  for (std::int64_t i = parts; i < count; i += parts)
    for (int k = 0; k < parts; ++k) part[k] = f(part[k], values[i + k]);
  for (int width = parts / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) part[k] = f(part[k], part[k + width]);
  return part[0];
}

struct Greater {
  template <class C>
  constexpr C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};
struct Plus {
  template <class C>
  constexpr C operator()(C a, C b) const {
    return a + b;
  }
};

// f(begin, count) for the blocks of a row.
template <class F>
[[gnu::always_inline]] inline void for_each_block(std::int64_t columns, F&& f) {
  for (std::int64_t begin = 0; begin < columns; begin += block) f(begin, std::min(block, columns - begin));
}

// f(row) for every row, split over the team.
template <class F>
void for_each_row(std::int64_t rows, std::int64_t columns, F&& f) {
  parallel_for(rows, std::max<std::int64_t>((1 << 12) / columns, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   for (std::int64_t row = begin; row < end; ++row) f(row);
                 });
               });
}

}  // namespace tandem::blocks
