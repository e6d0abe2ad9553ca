#include "tandem/ops/block_product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

void do_nothing() {}

// Every tile: 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

[[gnu::target("amx-tile")]] void configure_tiles() {
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

[[gnu::target("amx-tile")]] void release_tiles() {
  _tile_release();
}

// Tiles 0 and 1 hold the sums, 2 a tile of rows and 3 a panel. In all eight tiles, four products would need
// four loads in place of six. But on a virtual machine whose 16 cores all worked, four products and their
// loads took about 280 cycles in eight tiles and 150 in four; on an undisturbed core 72 in both.
template <MatrixType type, int sums>
[[gnu::target("amx-tile,amx-bf16,amx-int8"), gnu::always_inline]] inline void add_tile_product() {
  constexpr bool is_bf16 = type == MatrixType::bf16;  // tile numbers are part of the instructions' names
  if constexpr (is_bf16 && sums == 0) _tile_dpbf16ps(0, 2, 3);
  if constexpr (is_bf16 && sums == 1) _tile_dpbf16ps(1, 2, 3);
  if constexpr (!is_bf16 && sums == 0) _tile_dpbusd(0, 2, 3);
  if constexpr (!is_bf16 && sums == 1) _tile_dpbusd(1, 2, 3);
}

constexpr std::int64_t sums_stride = block_columns * 4;

// 16 or 32 rows and one panel. Panels come from the L2 cache and rows from L1: rows are read twice and panels
// once. In the other order ResNet-18 on 16 cores takes 1.05 (batch 8) and 1.09 (32) times as long in bf16,
// and 1.00 and 1.07 in 8-bit integers.
template <MatrixType type, bool two_row_tiles>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_panel(const BlockProduct& product,
                                                                  const std::byte* panel, std::byte* sums) {
  // The intrinsics of GCC do not say that they read memory.
  asm volatile("" ::: "memory");
  const std::int64_t stride = product.row_stride;
  const std::byte* const low_rows = product.rows + 16 * stride;
  _tile_zero(0);
  if constexpr (two_row_tiles) _tile_zero(1);
  for (std::int64_t s = 0; s < product.steps; ++s, panel += panel_step_bytes) {
    _tile_loadd(3, panel, step_bytes);
    _tile_loadd(2, product.rows + product.offsets[s], stride);
    add_tile_product<type, 0>();
    if constexpr (two_row_tiles) {
      _tile_loadd(2, low_rows + product.offsets[s], stride);
      add_tile_product<type, 1>();
    }
  }
  _tile_stored(0, sums, sums_stride);
  if constexpr (two_row_tiles) _tile_stored(1, sums + 16 * sums_stride, sums_stride);
}

template <MatrixType type>
void multiply_amx(const BlockProduct& product) {
  for (std::int64_t p = 0; p < product.panel_count; ++p) {
    const std::byte* const panel = product.panels + p * product.steps * panel_step_bytes;
    std::byte* const sums = static_cast<std::byte*>(product.sums) + p * 64;
    if (product.row_tiles == 2)
      multiply_panel<type, true>(product, panel, sums);
    else
      multiply_panel<type, false>(product, panel, sums);
  }
}

constexpr int dot_rows = 8;  // × two panels: 16 of 32 registers

template <MatrixType type>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni"), gnu::always_inline]] inline __m512i
add_dots(__m512i sums, __m512i row, __m512i panel) {
  if constexpr (type == MatrixType::bf16)
    return _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sums), reinterpret_cast<__m512bh>(row),
                                                reinterpret_cast<__m512bh>(panel)));
  else
    return _mm512_dpbusd_epi32(sums, row, panel);
}

template <MatrixType type, int panels>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")]] void multiply_dots(
    const BlockProduct& product) {
  const std::int64_t stride = product.row_stride, panel_bytes = product.steps * panel_step_bytes;
  for (std::int64_t first = 0; first < product.row_tiles * 16; first += dot_rows) {
    __m512i sums[dot_rows][panels];
#pragma GCC unroll 16
    for (int r = 0; r < dot_rows; ++r)
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) sums[r][p] = _mm512_setzero_si512();
    for (std::int64_t s = 0; s < product.steps; ++s) {
      const std::byte* const from = product.rows + first * stride + product.offsets[s];
      const std::byte* const panel = product.panels + s * panel_step_bytes;
      for (std::int64_t g = 0; g < 16; ++g) {
        __m512i columns[panels];
#pragma GCC unroll 2
        for (int p = 0; p < panels; ++p) columns[p] = _mm512_loadu_si512(panel + p * panel_bytes + g * 64);
#pragma GCC unroll 16
        for (int r = 0; r < dot_rows; ++r) {
          int pair;
          __builtin_memcpy(&pair, from + r * stride + g * 4, 4);
          const __m512i row = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
          for (int p = 0; p < panels; ++p) sums[r][p] = add_dots<type>(sums[r][p], row, columns[p]);
        }
      }
    }
    auto* const to = static_cast<std::byte*>(product.sums) + first * block_columns * 4;
#pragma GCC unroll 16
    for (int r = 0; r < dot_rows; ++r)
#pragma GCC unroll 2
      for (int p = 0; p < panels; ++p) _mm512_storeu_si512(to + r * block_columns * 4 + p * 64, sums[r][p]);
  }
}

template <MatrixType type>
void multiply_avx512(const BlockProduct& product) {
  product.panel_count == 2 ? multiply_dots<type, 2>(product) : multiply_dots<type, 1>(product);
}

// u8 · s8 without saturation, so that the sums are those of the other kernels: both factors widen to 16 bits,
// whose products are added in pairs. Rows widen once for all columns, some steps at a time.
constexpr int pair_rows = 4;
constexpr std::int64_t pair_steps = 16;
using WideRows = std::uint16_t[pair_rows][pair_steps * step_bytes];

[[gnu::target("avx2")]] void widen_rows(const BlockProduct& product, std::int64_t first_row,
                                        std::int64_t first_step, std::int64_t steps, WideRows& wide) {
  for (int r = 0; r < pair_rows; ++r)
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::byte* const from =
          product.rows + (first_row + r) * product.row_stride + product.offsets[first_step + s];
      for (std::int64_t at = 0; at < step_bytes; at += 16)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(wide[r] + s * step_bytes + at),
            _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at))));
    }
}

// Of eight columns, which have two sums each until the end.
[[gnu::target("avx2")]] void add_pairs(const WideRows& wide, std::int64_t steps, const std::byte* columns,
                                       std::byte* to, bool is_first) {
  __m256i sums[pair_rows][2];
#pragma GCC unroll 4
  for (int r = 0; r < pair_rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (std::int64_t s = 0; s < steps; ++s)
    for (std::int64_t g = 0; g < 16; ++g) {
      const auto* const quads = reinterpret_cast<const __m128i*>(columns + s * panel_step_bytes + g * 64);
      const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(quads)),
                    high = _mm256_cvtepi8_epi16(_mm_loadu_si128(quads + 1));
#pragma GCC unroll 4
      for (int r = 0; r < pair_rows; ++r) {
        long long quad;
        __builtin_memcpy(&quad, wide[r] + s * step_bytes + g * 4, sizeof(quad));
        const __m256i row = _mm256_set1_epi64x(quad);
        sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(row, low));
        sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(row, high));
      }
    }
#pragma GCC unroll 4
  for (int r = 0; r < pair_rows; ++r) {
    constexpr int in_order = 0xd8;  // of 64-bit parts: 0, 2, 1, 3
    auto* const target = reinterpret_cast<__m256i*>(to + r * block_columns * 4);
    const __m256i added = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[r][0], sums[r][1]), in_order);
    _mm256_storeu_si256(target, is_first ? added : _mm256_add_epi32(_mm256_loadu_si256(target), added));
  }
}

void multiply_avx2(const BlockProduct& product) {
  alignas(32) WideRows wide;
  for (std::int64_t row = 0; row < product.row_tiles * 16; row += pair_rows)
    for (std::int64_t first = 0; first < product.steps; first += pair_steps) {
      const std::int64_t steps = std::min(pair_steps, product.steps - first);
      widen_rows(product, row, first, steps, wide);
      for (std::int64_t panel = 0; panel < product.panel_count; ++panel)
        for (std::int64_t half = 0; half < 2; ++half)
          add_pairs(wide, steps,
                    product.panels + (panel * product.steps + first) * panel_step_bytes + half * 32,
                    static_cast<std::byte*>(product.sums) +
                        4 * (row * block_columns + panel * panel_width + half * 8),
                    first == 0);
    }
}

}  // namespace

const BlockKernel* x86_block_kernel(MatrixType type, MatrixIsa isa) {
  static constexpr BlockKernel amx_bf16{configure_tiles, multiply_amx<MatrixType::bf16>, release_tiles},
      amx_int8{configure_tiles, multiply_amx<MatrixType::int8>, release_tiles},
      avx512_bf16{do_nothing, multiply_avx512<MatrixType::bf16>, do_nothing},
      avx512_int8{do_nothing, multiply_avx512<MatrixType::int8>, do_nothing},
      avx2_int8{do_nothing, multiply_avx2, do_nothing};
  const bool is_bf16 = type == MatrixType::bf16;
  if (isa == MatrixIsa::amx) return is_bf16 ? &amx_bf16 : &amx_int8;
  if (isa == MatrixIsa::avx512) return is_bf16 ? &avx512_bf16 : &avx512_int8;
  if (!is_bf16 && simd_level() != SimdLevel::baseline) return &avx2_int8;
  return nullptr;
}

}  // namespace tandem::detail

#else

namespace tandem::detail {

const BlockKernel* x86_block_kernel(MatrixType, MatrixIsa) {
  return nullptr;
}

}  // namespace tandem::detail

#endif
