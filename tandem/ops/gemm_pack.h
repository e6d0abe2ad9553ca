// Copies of the factors of a matrix product in the order in which a tile reads them (product_tile.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tandem/core/simd.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// One operand as the product sees it: `line` is a row of the left factor or a column of the right one.
template <class T>
struct Lines {
  const T* data;
  std::int64_t count;
  std::int64_t line_step, inner_step;  // one of them is 1

  bool along_inner() const { return inner_step == 1; }
  const T* at(std::int64_t line, std::int64_t inner) const {
    return data + line * line_step + inner * inner_step;
  }
};

// Rows of a tile and of a packed group: as many as have their sums in registers, beside the operands.
template <class T, std::size_t bytes>
inline constexpr int gemm_rows = bytes == 32 ? 6 : tile_rows<T, bytes>;

template <class T>
std::int64_t native_gemm_rows() {
  std::int64_t rows = 0;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) { rows = gemm_rows<T, bytes>; });
  return rows;
}

// Distance between packed groups. Not a power of two, because then all groups would map to the same cache
// sets.
constexpr std::int64_t group_step(std::int64_t group, std::int64_t inner) {
  return inner * group + 16;
}

// Copies a square block of lines along the inner dimension, transposed.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void pack_square(T* to, std::int64_t to_step, const Lines<T>& from,
                                               std::int64_t line, std::int64_t inner) {
  constexpr std::size_t size = bytes / sizeof(T);
  typedef T Row __attribute__((vector_size(bytes)));
  Row block[size];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < size; ++i) {
    const T* const source = from.at(line + static_cast<std::int64_t>(i), inner);
    block[i] = *reinterpret_cast<const Vector<T, bytes>*>(source);
  }
  transpose_square<size>(block);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < size; ++i)
    *reinterpret_cast<Vector<T, bytes>*>(to + static_cast<std::int64_t>(i) * to_step) = block[i];
}

// Writes element (line, k) of a part of `from` to to[k · to_step + line].
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void pack_transposed(T* to, std::int64_t to_step, const Lines<T>& from,
                                                   std::int64_t first, std::int64_t count,
                                                   std::int64_t inner_begin, std::int64_t inner) {
  constexpr std::int64_t size = bytes / sizeof(T);
  const std::int64_t lines = count / size * size, whole = inner / size * size;
  for (std::int64_t line = 0; line < lines; line += size)
    for (std::int64_t k = 0; k < whole; k += size)
      pack_square<bytes>(to + k * to_step + line, to_step, from, first + line, inner_begin + k);
  if constexpr (bytes > 16) {
    pack_transposed<bytes / 2>(to + lines, to_step, from, first + lines, count - lines, inner_begin, whole);
    pack_transposed<bytes / 2>(to + whole * to_step, to_step, from, first, count, inner_begin + whole,
                               inner - whole);
  } else {
    for (std::int64_t line = 0; line < count; ++line)
      for (std::int64_t k = line < lines ? whole : 0; k < inner; ++k)
        to[k * to_step + line] = *from.at(first + line, inner_begin + k);
  }
}

// Writes lines [first, first + width) as [inner][width]; lines from `count` on are zeros.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void pack_inner_major(T* to, std::int64_t width, const Lines<T>& from,
                                                    std::int64_t first, std::int64_t inner_begin,
                                                    std::int64_t inner) {
  const std::int64_t count = std::min(width, from.count - first);
  if (count < width)
    for (std::int64_t k = 0; k < inner; ++k) std::fill(to + k * width + count, to + (k + 1) * width, T{0});
  if (from.along_inner()) return pack_transposed<bytes>(to, width, from, first, count, inner_begin, inner);
  for (std::int64_t k = 0; k < inner; ++k) {
    const T* const source = from.at(first, inner_begin + k);
    for (std::int64_t i = 0; i < count; ++i) to[k * width + i] = source[i];
  }
}

// Writes groups of rows that are stored across the inner dimension, each as [inner][row]; rows from `count`
// on are zeros. All groups at once: a stored line is read as a whole.
template <int group_rows, class T>
[[gnu::always_inline]] inline void pack_groups(T* to, std::int64_t groups, const Lines<T>& from,
                                               std::int64_t first, std::int64_t inner_begin,
                                               std::int64_t inner) {
  const std::int64_t count = std::min(groups * group_rows, from.count - first), whole = count / group_rows;
  for (std::int64_t k = 0; k < inner; ++k) {
    const T* const source = from.at(first, inner_begin + k);
    T* const column = to + k * group_rows;
    for (std::int64_t i = 0; i < count; i += 64 / static_cast<std::int64_t>(sizeof(T)))
      __builtin_prefetch(source + 8 * from.inner_step +
                         i);  // lines are far apart, the CPU does not guess them
    for (std::int64_t group = 0; group < whole; ++group)
      for (std::int64_t r = 0; r < group_rows; ++r)
        column[group * group_step(group_rows, inner) + r] = source[group * group_rows + r];
    if (whole < groups)
      for (std::int64_t r = 0; r < group_rows; ++r)
        column[whole * group_step(group_rows, inner) + r] =
            whole * group_rows + r < count ? source[whole * group_rows + r] : T{0};
  }
}

// Writes a group of rows as [row][inner].
template <int group_rows, class T>
[[gnu::always_inline]] inline void pack_rows(T* to, const Lines<T>& from, std::int64_t first,
                                             std::int64_t inner_begin, std::int64_t inner) {
  for (std::int64_t r = 0; r < group_rows; ++r) {
    T* const row = to + r * inner;
    if (first + r >= from.count) {
      std::fill_n(row, inner, T{0});
      continue;
    }
    const T* const source = from.at(first + r, inner_begin);
    for (std::int64_t k = 0; k < inner; ++k) row[k] = source[k];
  }
}

}  // namespace tandem::detail
