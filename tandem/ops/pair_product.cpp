#include "tandem/ops/pair_product.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#if defined(__aarch64__)

#include <arm_neon.h>

namespace tandem::detail {
namespace {

constexpr std::int64_t max_tiles = block_pairs / tile_pairs, tile_vectors = tile_pairs * panel_width / 2;
// Steps after which the next rows follow, at most, so that this part of a panel stays in the L1 cache.
constexpr std::int64_t max_chunk_steps = 24;

// The 2×2 sums of three pairs of rows × eight pairs of columns.
struct Tile {
  alignas(16) std::byte vectors[tile_vectors * 16];
};

// What one tile reads.
struct TileProduct {
  const std::byte* rows[tile_pairs];
  const std::int64_t* offsets;
  std::int64_t steps;
  const std::byte* panel;
};

using AddTile = void (*)(const TileProduct& product, Tile& tile);

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("bf16,i8mm"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+bf16+i8mm")
#endif

// In assembly, because GCC 12 spills three of the sums, which halves the rate.
//
// LoadSchedule::adjacent. Sums are v0–v7, v10–v17 and v20–v27, one register per pair of columns; v8, v18 and
// v28 hold 16 bytes of the three pairs of rows, v9, v19 and v29 the next. On Neoverse V1 it computes 240
// (bf16) and 500 (8-bit integers) billion operations/s of 330 and 660; with rows that are not in pairs, the
// best kernels reached 200 and 450.
template <bool is_bf16>
void add_tile_adjacent(const TileProduct& product, Tile& tile) {
  const std::int64_t* offsets = product.offsets;
  std::int64_t steps = product.steps, quarter = 0, row0 = 0, row1 = 0, row2 = 0;
  const std::byte* panel = product.panel;
  asm volatile(
      "ldp q0, q1, [%[sums]]\n"
      "ldp q2, q3, [%[sums], #32]\n"
      "ldp q4, q5, [%[sums], #64]\n"
      "ldp q6, q7, [%[sums], #96]\n"
      "ldp q10, q11, [%[sums], #128]\n"
      "ldp q12, q13, [%[sums], #160]\n"
      "ldp q14, q15, [%[sums], #192]\n"
      "ldp q16, q17, [%[sums], #224]\n"
      "ldp q20, q21, [%[sums], #256]\n"
      "ldp q22, q23, [%[sums], #288]\n"
      "ldp q24, q25, [%[sums], #320]\n"
      "ldp q26, q27, [%[sums], #352]\n"
      "0:\n"  // a step
      "ldr %[row2], [%[offsets]], #8\n"
      "mov %[quarter], #4\n"
      "add %[row0], %[first], %[row2], lsl #1\n"
      "add %[row1], %[second], %[row2], lsl #1\n"
      "add %[row2], %[third], %[row2], lsl #1\n"
      "1:\n"  // a quarter of it: two groups
      "ldp q8, q9, [%[row0]], #32\n"
      "ldp q18, q19, [%[row1]], #32\n"
      "ldp q28, q29, [%[row2]], #32\n"
      ".irp c, 0, 1, 2, 3, 4, 5, 6, 7\n"
      "ldr q30, [%[panel], #(16 * \\c)]\n"
      ".if %c[bf16]\n"
      "bfmmla v\\c\\().4s, v8.8h, v30.8h\n"
      "bfmmla v1\\c\\().4s, v18.8h, v30.8h\n"
      "bfmmla v2\\c\\().4s, v28.8h, v30.8h\n"
      ".else\n"
      "usmmla v\\c\\().4s, v8.16b, v30.16b\n"
      "usmmla v1\\c\\().4s, v18.16b, v30.16b\n"
      "usmmla v2\\c\\().4s, v28.16b, v30.16b\n"
      ".endif\n"
      ".endr\n"
      ".irp c, 0, 1, 2, 3, 4, 5, 6, 7\n"
      "ldr q31, [%[panel], #(128 + 16 * \\c)]\n"
      ".if %c[bf16]\n"
      "bfmmla v\\c\\().4s, v9.8h, v31.8h\n"
      "bfmmla v1\\c\\().4s, v19.8h, v31.8h\n"
      "bfmmla v2\\c\\().4s, v29.8h, v31.8h\n"
      ".else\n"
      "usmmla v\\c\\().4s, v9.16b, v31.16b\n"
      "usmmla v1\\c\\().4s, v19.16b, v31.16b\n"
      "usmmla v2\\c\\().4s, v29.16b, v31.16b\n"
      ".endif\n"
      ".endr\n"
      "subs %[quarter], %[quarter], #1\n"
      "add %[panel], %[panel], #256\n"
      "b.ne 1b\n"
      "subs %[steps], %[steps], #1\n"
      "b.ne 0b\n"
      "stp q0, q1, [%[sums]]\n"
      "stp q2, q3, [%[sums], #32]\n"
      "stp q4, q5, [%[sums], #64]\n"
      "stp q6, q7, [%[sums], #96]\n"
      "stp q10, q11, [%[sums], #128]\n"
      "stp q12, q13, [%[sums], #160]\n"
      "stp q14, q15, [%[sums], #192]\n"
      "stp q16, q17, [%[sums], #224]\n"
      "stp q20, q21, [%[sums], #256]\n"
      "stp q22, q23, [%[sums], #288]\n"
      "stp q24, q25, [%[sums], #320]\n"
      "stp q26, q27, [%[sums], #352]\n"
      : [offsets] "+r"(offsets), [steps] "+r"(steps), [panel] "+r"(panel), [quarter] "=&r"(quarter),
        [row0] "=&r"(row0), [row1] "=&r"(row1), [row2] "=&r"(row2)
      : [sums] "r"(tile.vectors), [first] "r"(product.rows[0]), [second] "r"(product.rows[1]),
        [third] "r"(product.rows[2]), [bf16] "i"(is_bf16 ? 1 : 0)
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
        "v27", "v28", "v29", "v30", "v31");
}

// LoadSchedule::early. Sums are v0–v7, v8–v15 and v16–v23. Three of v24–v27 hold 16 bytes of the pairs of
// rows, the fourth those of the first pair for the next group; the roles rotate. v28–v31 hold pairs of
// columns. Every register is loaded at least six products before it is read. The last step loads its own
// beginning in place of what would follow it.
template <bool is_bf16>
void add_tile_early(const TileProduct& product, Tile& tile) {
  const std::int64_t* offsets = product.offsets;
  std::int64_t steps = product.steps, row0 = 0, row1 = 0, row2 = 0, next = 0;
  const std::byte* panel = product.panel;
  asm volatile(R"(
.macro product sum, rows, columns
.if %c[bf16]
bfmmla v\sum\().4s, v\rows\().8h, v\columns\().8h
.else
usmmla v\sum\().4s, v\rows\().16b, v\columns\().16b
.endif
.endm
.macro columns_0_to_3 a, b, c, following, row, column
ldr q\following, [%[row0], #\row]
product 0, \a, 28
product 1, \a, 29
product 8, \b, 28
product 9, \b, 29
product 16, \c, 28
ldr q28, [%[panel], #\column]
product 17, \c, 29
ldr q29, [%[panel], #(\column + 16)]
product 2, \a, 30
product 10, \b, 30
product 18, \c, 30
ldr q30, [%[panel], #(\column + 32)]
product 3, \a, 31
product 11, \b, 31
product 19, \c, 31
ldr q31, [%[panel], #(\column + 48)]
.endm
.macro columns_4_to_7 a, b, c, row, column
product 4, \a, 28
product 12, \b, 28
product 20, \c, 28
ldr q28, [%[panel], #\column]
product 5, \a, 29
product 13, \b, 29
product 21, \c, 29
ldr q29, [%[panel], #(\column + 16)]
product 6, \a, 30
product 7, \a, 31
ldr q\a, [%[row1], #\row]
product 14, \b, 30
product 15, \b, 31
ldr q\b, [%[row2], #\row]
product 22, \c, 30
ldr q30, [%[panel], #(\column + 32)]
product 23, \c, 31
ldr q31, [%[panel], #(\column + 48)]
.endm
.macro set_rows
ldr %[row2], [%[offsets]]
add %[row0], %[first], %[row2], lsl #1
add %[row1], %[second], %[row2], lsl #1
add %[row2], %[third], %[row2], lsl #1
.endm
ldp q0, q1, [%[sums]]
ldp q2, q3, [%[sums], #32]
ldp q4, q5, [%[sums], #64]
ldp q6, q7, [%[sums], #96]
ldp q8, q9, [%[sums], #128]
ldp q10, q11, [%[sums], #160]
ldp q12, q13, [%[sums], #192]
ldp q14, q15, [%[sums], #224]
ldp q16, q17, [%[sums], #256]
ldp q18, q19, [%[sums], #288]
ldp q20, q21, [%[sums], #320]
ldp q22, q23, [%[sums], #352]
set_rows
ldr q24, [%[row0]]
ldr q25, [%[row1]]
ldr q26, [%[row2]]
ldp q28, q29, [%[panel]]
ldp q30, q31, [%[panel], #32]
0:
columns_0_to_3 24, 25, 26, 27, 16, 64
columns_4_to_7 24, 25, 26, 16, 128
columns_0_to_3 27, 24, 25, 26, 32, 192
columns_4_to_7 27, 24, 25, 32, 256
columns_0_to_3 26, 27, 24, 25, 48, 320
columns_4_to_7 26, 27, 24, 48, 384
columns_0_to_3 25, 26, 27, 24, 64, 448
columns_4_to_7 25, 26, 27, 64, 512
columns_0_to_3 24, 25, 26, 27, 80, 576
columns_4_to_7 24, 25, 26, 80, 640
columns_0_to_3 27, 24, 25, 26, 96, 704
columns_4_to_7 27, 24, 25, 96, 768
columns_0_to_3 26, 27, 24, 25, 112, 832
columns_4_to_7 26, 27, 24, 112, 896
subs %[steps], %[steps], #1
add %[next], %[offsets], #8
csel %[offsets], %[next], %[offsets], ne
set_rows
columns_0_to_3 25, 26, 27, 24, 0, 960
add %[next], %[panel], #1024
csel %[panel], %[next], %[panel], ne
columns_4_to_7 25, 26, 27, 0, 0
b.ne 0b
stp q0, q1, [%[sums]]
stp q2, q3, [%[sums], #32]
stp q4, q5, [%[sums], #64]
stp q6, q7, [%[sums], #96]
stp q8, q9, [%[sums], #128]
stp q10, q11, [%[sums], #160]
stp q12, q13, [%[sums], #192]
stp q14, q15, [%[sums], #224]
stp q16, q17, [%[sums], #256]
stp q18, q19, [%[sums], #288]
stp q20, q21, [%[sums], #320]
stp q22, q23, [%[sums], #352]
.purgem product
.purgem columns_0_to_3
.purgem columns_4_to_7
.purgem set_rows
)"
               : [offsets] "+r"(offsets), [steps] "+r"(steps), [panel] "+r"(panel), [next] "=&r"(next),
                 [row0] "=&r"(row0), [row1] "=&r"(row1), [row2] "=&r"(row2)
               : [sums] "r"(tile.vectors), [first] "r"(product.rows[0]), [second] "r"(product.rows[1]),
                 [third] "r"(product.rows[2]), [bf16] "i"(is_bf16 ? 1 : 0)
               : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                 "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
                 "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

// The sums of a tile as rows: pairs, and the two rows of a pair, are this many bytes apart.
struct RowDistances {
  std::int64_t pair, second;
};
void store_tile(const Tile& tile, std::byte* to, RowDistances distances) {
  for (std::int64_t i = 0; i < tile_vectors; i += 2) {
    const auto* const from = reinterpret_cast<const std::uint64_t*>(tile.vectors + i * 16);
    const uint64x2_t a = vld1q_u64(from), b = vld1q_u64(from + 2);
    auto* const at = reinterpret_cast<std::uint64_t*>(to + i / 8 * distances.pair + i % 8 * 8);
    vst1q_u64(at, vzip1q_u64(a, b));
    vst1q_u64(at + distances.second / 8, vzip2q_u64(a, b));
  }
}

template <AddTile add_tile>
void multiply_pairs(const PairProduct& product) {
  constexpr std::int64_t row_bytes = block_columns * 4;
  const RowDistances distances = product.splits_pairs ? RowDistances{row_bytes, block_pairs * row_bytes}
                                                      : RowDistances{2 * row_bytes, row_bytes};
  const std::int64_t chunk_steps = ceil_div(product.steps, ceil_div(product.steps, max_chunk_steps));
  for (std::int64_t p = 0; p < product.panel_count; ++p) {
    const std::byte* const panel = product.panels + p * product.steps * panel_step_bytes;
    Tile tiles[max_tiles];
    std::memset(tiles, 0, sizeof(tiles));
    for (std::int64_t s = 0; s < product.steps; s += chunk_steps)
      for (std::int64_t t = 0; t < product.used_tiles; ++t) {
        const std::int64_t* const pairs = product.pairs + t * tile_pairs;
        add_tile({.rows = {product.rows + pairs[0], product.rows + pairs[1], product.rows + pairs[2]},
                  .offsets = product.offsets + s,
                  .steps = std::min(chunk_steps, product.steps - s),
                  .panel = panel + s * panel_step_bytes},
                 tiles[t]);
      }
    for (std::int64_t t = 0; t < product.used_tiles; ++t)
      store_tile(
          tiles[t],
          static_cast<std::byte*>(product.sums) + t * tile_pairs * distances.pair + p * panel_width * 4,
          distances);
  }
}

double measure_ms(AddTile add_tile, const TileProduct& product, Tile& tile) {
  constexpr int calls = 8;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) add_tile(product, tile);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// The one that takes less time on this CPU, with operands in the L1 cache. By count of the products this
// takes about a tenth of a millisecond.
template <bool is_bf16>
LoadSchedule faster_schedule() {
  constexpr std::int64_t steps = max_chunk_steps, trials = 9;
  std::vector<std::int64_t> offsets(steps);
  for (std::int64_t s = 0; s < steps; ++s) offsets[static_cast<std::size_t>(s)] = s * step_bytes;
  const std::vector<std::byte> rows(2 * steps * step_bytes), panel(steps * panel_step_bytes);
  const TileProduct product{.rows = {rows.data(), rows.data(), rows.data()},
                            .offsets = offsets.data(),
                            .steps = steps,
                            .panel = panel.data()};
  Tile tile{};
  double adjacent_ms = measure_ms(add_tile_adjacent<is_bf16>, product, tile),
         early_ms = measure_ms(add_tile_early<is_bf16>, product, tile);
  for (std::int64_t i = 1; i < trials; ++i) {
    adjacent_ms = std::min(adjacent_ms, measure_ms(add_tile_adjacent<is_bf16>, product, tile));
    early_ms = std::min(early_ms, measure_ms(add_tile_early<is_bf16>, product, tile));
  }
  return early_ms < adjacent_ms ? LoadSchedule::early : LoadSchedule::adjacent;
}

}  // namespace

PairKernel pair_kernel(MatrixType type, MatrixIsa isa) {
  if (isa != MatrixIsa::neon) return nullptr;
  if (type == MatrixType::bf16) {
    static const PairKernel bf16 = pair_kernel(type, isa, faster_schedule<true>());
    return bf16;
  }
  static const PairKernel int8 = pair_kernel(type, isa, faster_schedule<false>());
  return int8;
}

PairKernel pair_kernel(MatrixType type, MatrixIsa isa, LoadSchedule schedule) {
  if (isa != MatrixIsa::neon) return nullptr;
  if (schedule == LoadSchedule::adjacent)
    return type == MatrixType::bf16 ? multiply_pairs<add_tile_adjacent<true>>
                                    : multiply_pairs<add_tile_adjacent<false>>;
  return type == MatrixType::bf16 ? multiply_pairs<add_tile_early<true>>
                                  : multiply_pairs<add_tile_early<false>>;
}

void make_pairs(std::byte* pairs, const std::byte* rows, std::int64_t bytes, std::int64_t distance) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(rows);
  auto* to = reinterpret_cast<std::uint8_t*>(pairs);
  for (std::int64_t i = 0; i < bytes; i += 16) {
    const uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(from + i)),
                     b = vreinterpretq_u64_u8(vld1q_u8(from + i + distance));
    vst1q_u8(to + 2 * i, vreinterpretq_u8_u64(vzip1q_u64(a, b)));
    vst1q_u8(to + 2 * i + 16, vreinterpretq_u8_u64(vzip2q_u64(a, b)));
  }
}

}  // namespace tandem::detail

#else

namespace tandem::detail {

PairKernel pair_kernel(MatrixType, MatrixIsa) {
  return nullptr;
}
PairKernel pair_kernel(MatrixType, MatrixIsa, LoadSchedule) {
  return nullptr;
}

void make_pairs(std::byte* pairs, const std::byte* rows, std::int64_t bytes, std::int64_t distance) {
  for (std::int64_t i = 0; i < bytes; i += 8) {
    std::memcpy(pairs + 2 * i, rows + i, 8);
    std::memcpy(pairs + 2 * i + 8, rows + i + distance, 8);
  }
}

}  // namespace tandem::detail

#endif
