// The product at the heart of the CPU's convolutions: a tile of a few rows × two vectors of sums that stays
// in registers while it runs along the inner size. The right factor lies in panels, [inner][two vectors], so
// that the inner loop reads straight through memory. Every sum has one order, whatever tile it lies in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tandem/core/simd.h"

namespace tandem {

// Rows come in groups of so many, and inner sizes in multiples of so many, zeros at the end.
inline constexpr std::int64_t row_group = 8;
inline constexpr std::int64_t inner_unit = 4;

constexpr std::int64_t pieces_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}
constexpr std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return pieces_of(count, unit) * unit;
}

// Columns of a panel.
template <class T, std::size_t bytes>
inline constexpr std::int64_t panel_columns = static_cast<std::int64_t>(2 * bytes / sizeof(T));

// The same for the vectors of this CPU.
template <class T>
std::int64_t panel_columns_here() {
  std::int64_t columns = 0;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) { columns = panel_columns<T, bytes>; });
  return columns;
}

// Rows of a tile: the registers hold eight of two vectors where there are 32 of them. Never more than a panel
// has columns.
#if defined(__aarch64__)
inline constexpr bool many_registers = true;
#else
inline constexpr bool many_registers = false;
#endif
template <class T, std::size_t bytes>
inline constexpr int product_rows = (many_registers || bytes == 64) && panel_columns<T, bytes> >= 8 ? 8 : 4;

template <class T>
struct QuadOf {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Quad = typename QuadOf<T>::type;

// A block of 4 × 4, its rows in four vectors.
template <class V>
[[gnu::always_inline]] inline void transpose(V* rows) {
  const V a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const V b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const V c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const V d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// How a group of rows of the left factor lies: [inner][row] on NEON, where a lane of a register is a free
// operand and loads should be few; [row][inner] elsewhere, where loading one number into all lanes costs
// nothing more.
template <std::size_t bytes>
inline constexpr bool inner_first = bytes == 16 && many_registers;

// Brings a group of rows, `inner` apart, into the order [inner][row].
template <class T>
[[gnu::always_inline]] inline void put_inner_first(T* __restrict to, const T* __restrict rows,
                                                   std::int64_t inner) {
  if constexpr (sizeof(T) == 4) {
    for (std::int64_t r = 0; r < row_group; r += 4)
      for (std::int64_t k = 0; k < inner; k += 4) {
        Quad<T> block[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          block[i] = *reinterpret_cast<const Vector<T, 16>*>(rows + (r + i) * inner + k);
        transpose(block);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          *reinterpret_cast<Vector<T, 16>*>(to + (k + i) * row_group + r) = block[i];
      }
  } else {
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t r = 0; r < row_group; ++r) to[k * row_group + r] = rows[r * inner + k];
  }
}

// What becomes of sums on the way out; each may be null.
template <class T>
struct RowEpilogue {
  const T* bias = nullptr;
  const T* residual = nullptr;
  bool relu = false;

  // The same from another place of the results on.
  [[gnu::always_inline]] RowEpilogue at(std::int64_t channel, std::int64_t element) const {
    return {bias ? bias + channel : nullptr, residual ? residual + element : nullptr, relu};
  }
};

// Writes the first `count` lanes of a vector of sums.
template <std::size_t bytes, class T, class V>
[[gnu::always_inline]] inline void write_lanes(T* to, V sums, std::int64_t count,
                                               const RowEpilogue<T>& epilogue) {
  constexpr std::int64_t lanes = bytes / sizeof(T);
  using Memory = Vector<T, bytes>;
  if (count >= lanes) {
    if (epilogue.bias) sums += *reinterpret_cast<const Memory*>(epilogue.bias);
    if (epilogue.residual) sums += *reinterpret_cast<const Memory*>(epilogue.residual);
    if (epilogue.relu) sums = sums < 0 ? V{} : sums;
    *reinterpret_cast<Memory*>(to) = sums;
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      T value = sums[i];
      if (epilogue.bias) value += epilogue.bias[i];
      if (epilogue.residual) value += epilogue.residual[i];
      to[i] = epilogue.relu && value < 0 ? T{0} : value;
    }
  }
}

template <class T, std::size_t bytes>
struct ProductTile {
  static constexpr int rows = product_rows<T, bytes>;
  static constexpr std::int64_t lanes = bytes / sizeof(T), columns = panel_columns<T, bytes>;
  using Memory = Vector<T, bytes>;                    // anywhere
  typedef T Sum __attribute__((vector_size(bytes)));  // in a register

  Sum sum[rows][2] = {};

  [[gnu::always_inline]] void load(const T* from, std::int64_t distance) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        sum[r][v] = *reinterpret_cast<const Memory*>(from + r * distance + v * lanes);
  }
  [[gnu::always_inline]] void store(T* to, std::int64_t distance) const {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) *reinterpret_cast<Memory*>(to + r * distance + v * lanes) = sum[r][v];
  }

  // Adds rows first … of a group that lies as inner_first says.
  [[gnu::always_inline]] void add_group(const T* group, std::int64_t first, const T* panel,
                                        std::int64_t inner) {
    if constexpr (inner_first<bytes>) {
      add_columns(group + first, row_group, panel, inner);
    } else {
      const T* const a = group + first * inner;
      for (std::int64_t k = 0; k < inner; ++k, panel += columns) {
        const Sum b0 = *reinterpret_cast<const Memory*>(panel);
        const Sum b1 = *reinterpret_cast<const Memory*>(panel + lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * a[r * inner + k];
          sum[r][1] += b1 * a[r * inner + k];
        }
      }
    }
  }

  // sum(r, ·) += Σ over k of a[k · distance + r] · panel[k].
  [[gnu::always_inline]] void add_columns(const T* a, std::int64_t distance, const T* panel,
                                          std::int64_t inner) {
    for (std::int64_t k = 0; k < inner; ++k, a += distance, panel += columns) {
      const Sum b0 = *reinterpret_cast<const Memory*>(panel);
      const Sum b1 = *reinterpret_cast<const Memory*>(panel + lanes);
      if constexpr (bytes == 16) {
        Sum x[rows / lanes];
#pragma GCC unroll 4
        for (int i = 0; i < rows / static_cast<int>(lanes); ++i)
          x[i] = *reinterpret_cast<const Memory*>(a + i * lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * x[r / static_cast<int>(lanes)][r % static_cast<int>(lanes)];
          sum[r][1] += b1 * x[r / static_cast<int>(lanes)][r % static_cast<int>(lanes)];
        }
      } else {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * a[r];
          sum[r][1] += b1 * a[r];
        }
      }
    }
  }
};

}  // namespace tandem
