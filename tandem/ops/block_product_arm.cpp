#include "tandem/ops/block_product.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace tandem::detail {
namespace {

void do_nothing() {}

// Products of 2×2 sums: a vector holds one group of two rows, or of two columns.
[[gnu::target("arch=armv8.2-a+bf16+i8mm"), gnu::always_inline]] inline float32x4_t add_products(
    float32x4_t sums, uint8x16_t rows, uint8x16_t columns) {
  return vbfmmlaq_f32(sums, vreinterpretq_bf16_u8(rows), vreinterpretq_bf16_u8(columns));
}
[[gnu::target("arch=armv8.2-a+bf16+i8mm"), gnu::always_inline]] inline int32x4_t add_products(
    int32x4_t sums, uint8x16_t rows, uint8x16_t columns) {
  return vusmmlaq_s32(sums, rows, vreinterpretq_s8_u8(columns));
}

inline constexpr int row_pairs = 4, column_pairs = 4;  // 16 of 32 registers

// Eight rows × eight columns from `panel` on.
template <class Sums>
[[gnu::target("arch=armv8.2-a+bf16+i8mm"), gnu::always_inline]] inline void multiply_eight(
    const BlockProduct& product, std::int64_t first_row, const std::byte* panel, std::byte* to) {
  Sums sums[row_pairs][column_pairs] = {};
  for (std::int64_t s = 0; s < product.steps; ++s) {
    const std::byte* const from = product.rows + first_row * product.row_stride + product.offsets[s];
    const std::byte* const columns = panel + s * panel_step_bytes;
    for (std::int64_t g = 0; g < 8; g += 2) {  // two groups of 8 bytes
      uint8x16_t low[row_pairs], high[row_pairs];
#pragma GCC unroll 4
      for (int r = 0; r < row_pairs; ++r) {
        const auto* const even =
            reinterpret_cast<const std::uint8_t*>(from + 2 * r * product.row_stride + g * 8);
        const uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(even)),
                         b = vreinterpretq_u64_u8(vld1q_u8(even + product.row_stride));
        low[r] = vreinterpretq_u8_u64(vzip1q_u64(a, b));
        high[r] = vreinterpretq_u8_u64(vzip2q_u64(a, b));
      }
#pragma GCC unroll 4
      for (int c = 0; c < column_pairs; ++c) {
        const auto* const pair = reinterpret_cast<const std::uint8_t*>(columns + g * 128 + c * 16);
        const uint8x16_t first = vld1q_u8(pair), second = vld1q_u8(pair + 128);
#pragma GCC unroll 4
        for (int r = 0; r < row_pairs; ++r) {
          sums[r][c] = add_products(sums[r][c], low[r], first);
          sums[r][c] = add_products(sums[r][c], high[r], second);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < row_pairs; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < column_pairs; ++c) {
      std::byte* const at = to + 2 * r * block_columns * 4 + c * 8;
      __builtin_memcpy(at, &sums[r][c], 8);
      __builtin_memcpy(at + block_columns * 4, reinterpret_cast<const std::byte*>(&sums[r][c]) + 8, 8);
    }
}

template <class Sums>
[[gnu::target("arch=armv8.2-a+bf16+i8mm"), gnu::always_inline]] inline void multiply_all(
    const BlockProduct& product) {
  for (std::int64_t p = 0; p < product.panel_count; ++p)
    for (std::int64_t half = 0; half < 2; ++half)
      for (std::int64_t r = 0; r < product.row_tiles * 16; r += 2 * row_pairs)
        multiply_eight<Sums>(
            product, r, product.panels + p * product.steps * panel_step_bytes + half * 64,
            static_cast<std::byte*>(product.sums) + (r * block_columns + p * panel_width + half * 8) * 4);
}

[[gnu::target("arch=armv8.2-a+bf16+i8mm")]] void multiply_bf16(const BlockProduct& product) {
  multiply_all<float32x4_t>(product);
}
[[gnu::target("arch=armv8.2-a+bf16+i8mm")]] void multiply_int8(const BlockProduct& product) {
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

#else

namespace tandem::detail {

const BlockKernel* arm_block_kernel(MatrixType, MatrixIsa) {
  return nullptr;
}

}  // namespace tandem::detail

#endif
