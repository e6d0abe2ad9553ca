#include "tandem/ops/block_product.h"

#if defined(__x86_64__)

#include <immintrin.h>

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

// Tiles 0 … 3 hold the sums, 4 and 5 rows, 6 and 7 panels. Rows come in pairs of tiles where possible: then
// four products need four loads.
template <MatrixType type, bool two_tiles, bool two_panels>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_tiles(const BlockProduct& product) {
  // The intrinsics of GCC do not say that they read memory.
  asm volatile("" ::: "memory");
  const std::byte* const rows = product.rows;
  const std::int64_t stride = product.row_stride;
  const std::byte* panel = product.panels;
  const std::int64_t panel_bytes = product.steps * panel_step_bytes;
  _tile_zero(0);
  if constexpr (two_panels) _tile_zero(1);
  if constexpr (two_tiles) _tile_zero(2);
  if constexpr (two_tiles && two_panels) _tile_zero(3);
  for (std::int64_t s = 0; s < product.steps; ++s, panel += panel_step_bytes) {
    const std::byte* const from = rows + product.offsets[s];
    _tile_loadd(6, panel, step_bytes);
    _tile_loadd(4, from, stride);
    if constexpr (type == MatrixType::bf16)
      _tile_dpbf16ps(0, 4, 6);
    else
      _tile_dpbusd(0, 4, 6);
    if constexpr (two_tiles) {
      _tile_loadd(5, from + 16 * stride, stride);
      if constexpr (type == MatrixType::bf16)
        _tile_dpbf16ps(2, 5, 6);
      else
        _tile_dpbusd(2, 5, 6);
    }
    if constexpr (two_panels) {
      _tile_loadd(7, panel + panel_bytes, step_bytes);
      if constexpr (type == MatrixType::bf16) {
        _tile_dpbf16ps(1, 4, 7);
        if constexpr (two_tiles) _tile_dpbf16ps(3, 5, 7);
      } else {
        _tile_dpbusd(1, 4, 7);
        if constexpr (two_tiles) _tile_dpbusd(3, 5, 7);
      }
    }
  }
  constexpr std::int64_t sums_stride = block_columns * 4;
  std::byte* const sums = static_cast<std::byte*>(product.sums);
  _tile_stored(0, sums, sums_stride);
  if constexpr (two_panels) _tile_stored(1, sums + 64, sums_stride);
  if constexpr (two_tiles) _tile_stored(2, sums + 16 * sums_stride, sums_stride);
  if constexpr (two_tiles && two_panels) _tile_stored(3, sums + 16 * sums_stride + 64, sums_stride);
}

template <MatrixType type>
void multiply_amx(const BlockProduct& product) {
  const bool two_tiles = product.row_tiles == 2, two_panels = product.panel_count == 2;
  if (two_tiles && two_panels) return multiply_tiles<type, true, true>(product);
  if (two_tiles) return multiply_tiles<type, true, false>(product);
  if (two_panels) return multiply_tiles<type, false, true>(product);
  multiply_tiles<type, false, false>(product);
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

}  // namespace

const BlockKernel* x86_block_kernel(MatrixType type, MatrixIsa isa) {
  static constexpr BlockKernel amx_bf16{configure_tiles, multiply_amx<MatrixType::bf16>, release_tiles},
      amx_int8{configure_tiles, multiply_amx<MatrixType::int8>, release_tiles},
      avx512_bf16{do_nothing, multiply_avx512<MatrixType::bf16>, do_nothing},
      avx512_int8{do_nothing, multiply_avx512<MatrixType::int8>, do_nothing};
  const bool is_bf16 = type == MatrixType::bf16;
  if (isa == MatrixIsa::amx) return is_bf16 ? &amx_bf16 : &amx_int8;
  if (isa == MatrixIsa::avx512) return is_bf16 ? &avx512_bf16 : &avx512_int8;
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
