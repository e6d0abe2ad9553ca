// The product at the heart of the CPU's convolutions: a tile of a few rows × two vectors of sums that stays
// in registers while it runs along the inner size. The right factor lies in panels, [inner][two vectors], so
// that the inner loop reads straight through memory. Every sum has one order, whatever tile it lies in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tandem/core/simd.h"

namespace tandem {

// Rows come in groups of so many, and inner sizes that run along rows in multiples of so many, zeros at the
// end.
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

  // sum(r, ·) += Σ over k of a[r · distance + k] · panel[k]; `inner` is a multiple of inner_unit.
  [[gnu::always_inline]] void add_rows(const T* a, std::int64_t distance, const T* panel,
                                       std::int64_t inner) {
    if constexpr (bytes == 16) {  // a lane of a register is a free operand on NEON
      for (std::int64_t k = 0; k < inner; k += lanes) {
        Sum x[rows];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) x[r] = *reinterpret_cast<const Memory*>(a + r * distance + k);
#pragma GCC unroll 4
        for (int lane = 0; lane < static_cast<int>(lanes); ++lane, panel += columns) {
          const Sum b0 = *reinterpret_cast<const Memory*>(panel);
          const Sum b1 = *reinterpret_cast<const Memory*>(panel + lanes);
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r) {
            sum[r][0] += b0 * x[r][lane];
            sum[r][1] += b1 * x[r][lane];
          }
        }
      }
    } else {
      for (std::int64_t k = 0; k < inner; ++k, panel += columns) {
        const Sum b0 = *reinterpret_cast<const Memory*>(panel);
        const Sum b1 = *reinterpret_cast<const Memory*>(panel + lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * a[r * distance + k];
          sum[r][1] += b1 * a[r * distance + k];
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

// What becomes of the sums of a row on the way out; each may be null, and lies as the row does.
template <class T>
struct RowEpilogue {
  const T* bias = nullptr;
  const T* residual = nullptr;
  bool relu = false;
};

// Writes the first `count` sums, at most a panel's, of one row; `sums` is used up.
template <class T>
[[gnu::always_inline]] inline void write_row(T* __restrict to, T* __restrict sums, std::int64_t count,
                                             const RowEpilogue<T>& epilogue) {
  if (epilogue.bias)
    for (std::int64_t i = 0; i < count; ++i) sums[i] += epilogue.bias[i];
  if (epilogue.residual)
    for (std::int64_t i = 0; i < count; ++i) sums[i] += epilogue.residual[i];
  if (epilogue.relu)
    for (std::int64_t i = 0; i < count; ++i) sums[i] = sums[i] < 0 ? T{0} : sums[i];
  for (std::int64_t i = 0; i < count; ++i) to[i] = sums[i];
}

}  // namespace tandem
