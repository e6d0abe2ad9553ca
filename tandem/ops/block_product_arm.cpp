#include "tandem/ops/block_product.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("bf16,i8mm"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm")
#endif

namespace tandem::detail {
namespace {

void do_nothing() {}

// Products of 2×2 sums: a vector holds one group of two rows, or of two columns. Clang before 16 has these
// intrinsics only where the whole file may use them.
#if defined(__clang__)
[[gnu::always_inline]] inline float32x4_t add_products(float32x4_t sums, uint8x16_t rows,
                                                       uint8x16_t columns) {
  asm("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(sums) : "w"(rows), "w"(columns));
  return sums;
}
[[gnu::always_inline]] inline int32x4_t add_products(int32x4_t sums, uint8x16_t rows, uint8x16_t columns) {
  asm("usmmla %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(rows), "w"(columns));
  return sums;
}
#else
[[gnu::always_inline]] inline float32x4_t add_products(float32x4_t sums, uint8x16_t rows,
                                                       uint8x16_t columns) {
  return vbfmmlaq_f32(sums, vreinterpretq_bf16_u8(rows), vreinterpretq_bf16_u8(columns));
}
[[gnu::always_inline]] inline int32x4_t add_products(int32x4_t sums, uint8x16_t rows, uint8x16_t columns) {
  return vusmmlaq_s32(sums, rows, vreinterpretq_s8_u8(columns));
}
#endif

// Four rows × a panel: 16 of 32 registers. Two rows are put side by side by two instructions for every 16
// products, and that is the least such a tile needs; eight rows × eight columns need twice as many, and more
// registers than the compiler finds (measured on Neoverse V1: 250 in place of 440 billion operations/s of
// 8-bit integers).
inline constexpr int row_pairs = 2, column_pairs = 8, tile_rows = 2 * row_pairs;
// Steps after which the next rows follow, so that this part of a panel stays in the L1 cache.
inline constexpr std::int64_t chunk_steps = 16;

template <class Sums>
struct Tile {
  Sums sums[row_pairs][column_pairs];
};

template <class Sums>
[[gnu::always_inline]] inline void multiply_tile(const BlockProduct& product, std::int64_t first_row,
                                                 std::int64_t first_step, const std::byte* panel,
                                                 Tile<Sums>& tile) {
  Tile<Sums> own = tile;
  const std::int64_t stride = product.row_stride,
                     last_step = std::min(product.steps, first_step + chunk_steps);
  for (std::int64_t s = first_step; s < last_step; ++s) {
    const std::byte* const from = product.rows + first_row * stride + product.offsets[s];
    const std::byte* const columns = panel + s * panel_step_bytes;
#pragma GCC unroll 4
    for (std::int64_t g = 0; g < 8; g += 2) {  // two groups of 8 bytes
      uint8x16_t halves[2][row_pairs];
#pragma GCC unroll 2
      for (int r = 0; r < row_pairs; ++r) {
        const auto* const even = reinterpret_cast<const std::uint8_t*>(from + 2 * r * stride + g * 8);
        const uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(even)),
                         b = vreinterpretq_u64_u8(vld1q_u8(even + stride));
        halves[0][r] = vreinterpretq_u8_u64(vzip1q_u64(a, b));
        halves[1][r] = vreinterpretq_u8_u64(vzip2q_u64(a, b));
      }
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h)
#pragma GCC unroll 8
        for (int c = 0; c < column_pairs; ++c) {
          const uint8x16_t pair =
              vld1q_u8(reinterpret_cast<const std::uint8_t*>(columns + (g + h) * 128 + c * 16));
#pragma GCC unroll 2
          for (int r = 0; r < row_pairs; ++r)
            own.sums[r][c] = add_products(own.sums[r][c], halves[h][r], pair);
        }
    }
  }
  tile = own;
}

// A tile's 2×2 sums as rows.
template <class Sums>
[[gnu::always_inline]] inline void store_tile(const Tile<Sums>& tile, std::byte* to) {
  constexpr std::int64_t row_bytes = block_columns * 4;
#pragma GCC unroll 2
  for (int r = 0; r < row_pairs; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < column_pairs; c += 2) {
      const auto a = reinterpret_cast<uint64x2_t>(tile.sums[r][c]),
                 b = reinterpret_cast<uint64x2_t>(tile.sums[r][c + 1]);
      auto* const at = reinterpret_cast<std::uint64_t*>(to + 2 * r * row_bytes + c * 8);
      vst1q_u64(at, vzip1q_u64(a, b));
      vst1q_u64(at + row_bytes / 8, vzip2q_u64(a, b));
    }
}

template <class Sums>
[[gnu::always_inline]] inline void multiply_all(const BlockProduct& product) {
  const std::int64_t tiles = product.row_tiles * 16 / tile_rows;
  for (std::int64_t p = 0; p < product.panel_count; ++p) {
    Tile<Sums> sums[block_rows / tile_rows] = {};
    for (std::int64_t s = 0; s < product.steps; s += chunk_steps)
      for (std::int64_t t = 0; t < tiles; ++t)
        multiply_tile(product, t * tile_rows, s, product.panels + p * product.steps * panel_step_bytes,
                      sums[t]);
    for (std::int64_t t = 0; t < tiles; ++t)
      store_tile(sums[t], static_cast<std::byte*>(product.sums) +
                              (t * tile_rows * block_columns + p * panel_width) * 4);
  }
}

void multiply_bf16(const BlockProduct& product) {
  multiply_all<float32x4_t>(product);
}
void multiply_int8(const BlockProduct& product) {
  multiply_all<int32x4_t>(product);
}

}  // namespace

const BlockKernel* arm_block_kernel(MatrixType type, MatrixIsa isa) {
  static constexpr BlockKernel bf16{do_nothing, multiply_bf16, do_nothing},
      int8{do_nothing, multiply_int8, do_nothing};
  if (isa != MatrixIsa::neon) return nullptr;
  return type == MatrixType::bf16 ? &bf16 : &int8;
}

}  // namespace tandem::detail

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace tandem::detail {

const BlockKernel* arm_block_kernel(MatrixType, MatrixIsa) {
  return nullptr;
}

}  // namespace tandem::detail

#endif
