// The matrix product inside CPU convolutions and products: a tile of a few rows × two vectors of sums that
// stays in registers along the whole inner dimension. The right factor is packed into panels, [inner][two
// vectors], so that the inner loop reads memory sequentially. The order of every sum is the same in every
// tile, which keeps the bits independent of how the work is split.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tandem/core/index_range.h"
#include "tandem/core/simd.h"
#include "tandem/ops/fused_activation.h"

namespace tandem::detail {

// Rows are packed in groups of row_group; inner sizes are padded with zeros to a multiple of inner_multiple.
inline constexpr std::int64_t row_group = 8;
inline constexpr std::int64_t inner_multiple = 4;

// Columns of a panel for vectors of `bytes`.
template <class T, std::size_t bytes>
inline constexpr std::int64_t panel_columns = static_cast<std::int64_t>(2 * bytes / sizeof(T));

// Columns of a panel for the widest vectors of this CPU.
template <class T>
std::int64_t native_panel_columns() {
  std::int64_t columns = 0;
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) { columns = panel_columns<T, bytes>; });
  return columns;
}

// Rows of a tile: with 32 vector registers, the sums of eight rows fit beside the operands, else four. Never
// more than a panel has columns.
#if defined(__aarch64__)
inline constexpr bool has_32_registers = true;
#else
inline constexpr bool has_32_registers = false;
#endif
template <class T, std::size_t bytes>
inline constexpr int tile_rows = (has_32_registers || bytes == 64) && panel_columns<T, bytes> >= 8 ? 8 : 4;

template <class T>
struct QuadOf {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Quad = typename QuadOf<T>::type;

// Exchanges the off-diagonal blocks of `distance` columns of two rows.
template <std::size_t distance, class V, std::size_t... column>
[[gnu::always_inline]] inline void exchange_blocks(V& a, V& b, std::index_sequence<column...>) {
  constexpr std::size_t size = sizeof...(column);
  const V upper = __builtin_shufflevector(a, b, (column & distance ? size + column - distance : column)...);
  b = __builtin_shufflevector(a, b, (column & distance ? size + column : column + distance)...);
  a = upper;
}

// Transposes a square block whose rows are `size` vectors of `size` elements.
template <std::size_t size, std::size_t distance = size / 2, class V>
[[gnu::always_inline]] inline void transpose_square(V* rows) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < size; ++i)
    if ((i & distance) == 0)
      exchange_blocks<distance>(rows[i], rows[i + distance], std::make_index_sequence<size>());
  if constexpr (distance > 1) transpose_square<size, distance / 2>(rows);
}

// The layout of a row group of the left factor. NEON: [inner][row], because multiplying by one lane of a
// register is free and loads are scarce. Elsewhere: [row][inner], because a broadcast load costs no more than
// a plain one.
template <std::size_t bytes>
inline constexpr bool is_inner_major = bytes == 16 && has_32_registers;

// Repacks a row group from [row][inner] to [inner][row].
template <class T>
[[gnu::always_inline]] inline void to_inner_major(T* __restrict to, const T* __restrict rows,
                                                  std::int64_t inner) {
  if constexpr (sizeof(T) == 4) {
    for (std::int64_t r = 0; r < row_group; r += 4)
      for (std::int64_t k = 0; k < inner; k += 4) {
        Quad<T> block[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          block[i] = *reinterpret_cast<const Vector<T, 16>*>(rows + (r + i) * inner + k);
        transpose_square<4>(block);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          *reinterpret_cast<Vector<T, 16>*>(to + (k + i) * row_group + r) = block[i];
      }
  } else {
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t r = 0; r < row_group; ++r) to[k * row_group + r] = rows[r * inner + k];
  }
}

// Applied to the sums before they are stored: activation(sum + bias + residual). Pointers may be null. Tiles
// apply ReLU alone: for the other activations, activate_row() follows (fused_activation_cpu.h).
template <class T>
struct RowEpilogue {
  const T* bias = nullptr;
  const T* residual = nullptr;
  FusedActivation activation = FusedActivation::none;

  // The epilogue for the results from this channel and output element on.
  [[gnu::always_inline]] RowEpilogue offset_by(std::int64_t channel, std::int64_t element) const {
    return {bias ? bias + channel : nullptr, residual ? residual + element : nullptr, activation};
  }
};

// Stores fewer sums than a vector has. Not inlined: the many copies took most of the time to compile a
// convolution.
template <class T>
[[gnu::noinline]] void write_tail(T* to, const T* sums, std::int64_t count, const RowEpilogue<T>& epilogue) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value = sums[i];
    if (epilogue.bias) value += epilogue.bias[i];
    if (epilogue.residual) value += epilogue.residual[i];
    to[i] = epilogue.activation == FusedActivation::relu && value < 0 ? T{0} : value;
  }
}

// Stores the first `count` lanes of a vector of sums.
template <std::size_t bytes, class T, class V>
[[gnu::always_inline]] inline void write_lanes(T* to, V sums, std::int64_t count,
                                               const RowEpilogue<T>& epilogue) {
  constexpr std::int64_t lanes = bytes / sizeof(T);
  using Memory = Vector<T, bytes>;
  if (count >= lanes) {
    if (epilogue.bias) sums += *reinterpret_cast<const Memory*>(epilogue.bias);
    if (epilogue.residual) sums += *reinterpret_cast<const Memory*>(epilogue.residual);
    if (epilogue.activation == FusedActivation::relu) sums = sums < 0 ? V{} : sums;
    *reinterpret_cast<Memory*>(to) = sums;
  } else if (count > 0) {
    T values[lanes];
    *reinterpret_cast<Memory*>(values) = sums;
    write_tail(to, values, count, epilogue);
  }
}

// `vectors`: 1 uses the first half of a panel only.
template <class T, std::size_t bytes, int vectors = 2, int row_count = tile_rows<T, bytes>>
struct ProductTile {
  static constexpr int rows = row_count;
  static constexpr std::int64_t lanes = bytes / sizeof(T), columns = panel_columns<T, bytes>,
                                used_columns = vectors * lanes;
  using Memory = Vector<T, bytes>;                    // unaligned, in memory
  typedef T Sum __attribute__((vector_size(bytes)));  // in a register

  Sum sum[rows][vectors] = {};

  [[gnu::always_inline]] void load(const T* from, std::int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        sum[r][v] = *reinterpret_cast<const Memory*>(from + r * stride + v * lanes);
  }
  [[gnu::always_inline]] void add(const T* from, std::int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        sum[r][v] = *reinterpret_cast<const Memory*>(from + r * stride + v * lanes) + sum[r][v];
  }
  [[gnu::always_inline]] void store(T* to, std::int64_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) *reinterpret_cast<Memory*>(to + r * stride + v * lanes) = sum[r][v];
  }

  [[gnu::always_inline]] static Sum second_vector(const T* panel) {
    if constexpr (vectors > 1)
      return *reinterpret_cast<const Memory*>(panel + lanes);
    else
      return Sum{};
  }

  // Accumulates rows [first, first + rows) of a row group in the layout that is_inner_major selects.
  [[gnu::always_inline]] void add_group(const T* group, std::int64_t first, const T* panel,
                                        std::int64_t inner) {
    add_group_part(group, first, panel, inner, 0, inner);
  }

  // The part [begin, end) of the inner dimension, for which `panel` has the rows.
  [[gnu::always_inline]] void add_group_part(const T* group, std::int64_t first, const T* panel,
                                             std::int64_t inner, std::int64_t begin, std::int64_t end) {
    if constexpr (is_inner_major<bytes>) {
      add_columns(group + begin * row_group + first, row_group, panel, end - begin);
    } else {
      const T* const a = group + first * inner;
      for (std::int64_t k = begin; k < end; ++k, panel += columns) {
        const Sum b0 = *reinterpret_cast<const Memory*>(panel);
        const Sum b1 = second_vector(panel);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * a[r * inner + k];
          if constexpr (vectors > 1) sum[r][1] += b1 * a[r * inner + k];
        }
      }
    }
  }

  // sum(r, ·) += Σ over k of a[k · stride + r] · panel[k].
  [[gnu::always_inline]] void add_columns(const T* a, std::int64_t stride, const T* panel,
                                          std::int64_t inner) {
    for (std::int64_t k = 0; k < inner; ++k, a += stride, panel += columns) {
      const Sum b0 = *reinterpret_cast<const Memory*>(panel);
      const Sum b1 = second_vector(panel);
      if constexpr (bytes == 16) {
        Sum x[rows / lanes];
#pragma GCC unroll 4
        for (int i = 0; i < rows / static_cast<int>(lanes); ++i)
          x[i] = *reinterpret_cast<const Memory*>(a + i * lanes);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * x[r / static_cast<int>(lanes)][r % static_cast<int>(lanes)];
          if constexpr (vectors > 1)
            sum[r][1] += b1 * x[r / static_cast<int>(lanes)][r % static_cast<int>(lanes)];
        }
      } else {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          sum[r][0] += b0 * a[r];
          if constexpr (vectors > 1) sum[r][1] += b1 * a[r];
        }
      }
    }
  }
};

}  // namespace tandem::detail
