#include <concepts>

#include "tandem/core/check.h"
#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/block_product.h"

#if defined(__x86_64__)

#include <immintrin.h>

// A false alarm inside the intrinsics of GCC 12 (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace tandem::detail {
namespace {

constexpr std::int64_t sums_stride = block_columns * 4;

// The constants of 16 columns.
struct ColumnConstants {
  __m512 scale, bias;
};

struct Constants {
  ColumnConstants columns[2];
  __mmask16 masks[2];
  __m512 inverse_scale, zero, residual_scale, residual_zero;
};

[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline __m512
load_stored(const BFloat16* from, __mmask16 mask, const Constants&) {
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline __m512
load_stored(const float* from, __mmask16 mask, const Constants&) {
  return _mm512_maskz_loadu_ps(mask, from);
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline __m512
load_stored(const std::uint8_t* from, __mmask16 mask, const Constants& constants) {
  const __m512 stored = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from)));
  return _mm512_mul_ps(_mm512_sub_ps(stored, constants.residual_zero), constants.residual_scale);
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline void store(
    BFloat16* to, __mmask16 mask, __m512 values, const Constants&) {
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline void store(
    float* to, __mmask16 mask, __m512 values, const Constants&) {
  _mm512_mask_storeu_ps(to, mask, values);
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline void store(
    std::uint8_t* to, __mmask16 mask, __m512 values, const Constants& constants) {
  const __m512 scaled = _mm512_fmadd_ps(values, constants.inverse_scale, constants.zero);
  const __m512 clamped = _mm512_min_ps(_mm512_max_ps(scaled, _mm512_setzero_ps()), _mm512_set1_ps(255));
  _mm_mask_storeu_epi8(to, mask, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(clamped)));
}

// All 32 columns of bf16: one store of 64 bytes per row.
template <MatrixType type>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]] void finish_lines(
    const BlockEpilogue& epilogue, const std::byte* sums, const BlockTarget& target) {
  __m512 bias[2], scale[2];
  for (int h = 0; h < 2; ++h) {
    const std::int64_t column = target.first_column + h * 16;
    bias[h] = epilogue.bias ? _mm512_loadu_ps(epilogue.bias + column) : _mm512_setzero_ps();
    scale[h] = epilogue.scale ? _mm512_loadu_ps(epilogue.scale + column) : _mm512_set1_ps(1);
  }
  const bool relu = epilogue.activation == FusedActivation::relu;
  auto* const results = reinterpret_cast<BFloat16*>(target.result);
  const auto* const residuals = reinterpret_cast<const BFloat16*>(epilogue.residual);
  const std::int64_t stride = target.row_stride,
                     first_column = target.first_column;  // results may alias them
  for (const BlockRun& run : target.runs) {
    const std::byte* from = sums + run.row * sums_stride;
    std::int64_t at = run.offset + first_column;
    for (std::int64_t r = 0; r < run.count; ++r, from += sums_stride, at += stride) {
      __m512 a, b;
      if constexpr (type == MatrixType::bf16) {
        a = _mm512_add_ps(_mm512_loadu_ps(from), bias[0]);
        b = _mm512_add_ps(_mm512_loadu_ps(from + 64), bias[1]);
      } else {
        a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(from)), scale[0], bias[0]);
        b = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(from + 64)), scale[1], bias[1]);
      }
      if (residuals) {
        const __m512i pairs = _mm512_loadu_si512(residuals + at);
        const __m512i first = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pairs)),
                      second = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(pairs, 1));
        a = _mm512_add_ps(a, _mm512_castsi512_ps(_mm512_slli_epi32(first, 16)));
        b = _mm512_add_ps(b, _mm512_castsi512_ps(_mm512_slli_epi32(second, 16)));
      }
      if (relu) {  // keeps NaN, the second operand
        a = _mm512_max_ps(_mm512_setzero_ps(), a);
        b = _mm512_max_ps(_mm512_setzero_ps(), b);
      }
      _mm512_storeu_si512(results + at, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
    }
  }
}

// For results of u8. Everything is scaled by the result's scale before it is added.
struct ByteConstants {
  __m512 scale[2], shift[2];  // of 16 columns each
  __m512 residual_scale, zero;
  bool has_min;
};

// 32 results as 16-bit integers, in the order of the packing instructions. They and the next ones clamp to 0,
// and to 255 what a 32-bit integer can hold. NaN becomes 0.
template <bool is_bounded, bool has_residual>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), gnu::always_inline]] inline __m512i
rounded_words(const ByteConstants& constants, const std::byte* sums, const std::uint8_t* residuals,
              std::int64_t at) {
  __m512i whole[2];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    __m512 values = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums + h * 64)), constants.scale[h],
                                    constants.shift[h]);
    if constexpr (has_residual) {
      const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(residuals + at + h * 16));
      values =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(stored)), constants.residual_scale, values);
    }
    if (constants.has_min) values = _mm512_max_ps(constants.zero, values);
    if constexpr (!is_bounded) values = _mm512_min_ps(_mm512_set1_ps(255), values);
    whole[h] = _mm512_cvtps_epi32(values);
  }
  return _mm512_packs_epi32(whole[0], whole[1]);
}

// All 32 columns: the bytes of two rows at a time.
template <bool is_bounded, bool has_residual>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]] void finish_bytes(
    const BlockEpilogue& epilogue, const std::byte* sums, const BlockTarget& target) {
  const __m512 inverse = _mm512_set1_ps(1 / epilogue.result.scale);
  ByteConstants constants;
  constants.zero = _mm512_set1_ps(epilogue.result.zero);
  constants.residual_scale = _mm512_mul_ps(_mm512_set1_ps(epilogue.residual_values.scale), inverse);
  constants.has_min = epilogue.activation == FusedActivation::relu && epilogue.result.zero > 0;
  for (int h = 0; h < 2; ++h) {
    const std::int64_t column = target.first_column + h * 16;
    const __m512 scale = epilogue.scale ? _mm512_loadu_ps(epilogue.scale + column) : _mm512_set1_ps(1),
                 bias = epilogue.bias ? _mm512_loadu_ps(epilogue.bias + column) : _mm512_setzero_ps();
    constants.scale[h] = _mm512_mul_ps(scale, inverse);
    constants.shift[h] = _mm512_fmadd_ps(bias, inverse, constants.zero);
    if constexpr (has_residual)
      constants.shift[h] = _mm512_sub_ps(
          constants.shift[h],
          _mm512_mul_ps(_mm512_set1_ps(epilogue.residual_values.zero), constants.residual_scale));
  }
  // The packing instructions work within each 128 bits.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const auto* const residuals = reinterpret_cast<const std::uint8_t*>(epilogue.residual);
  std::byte* const results = target.result;
  const std::int64_t stride = target.row_stride,
                     first_column = target.first_column;  // results may alias them
  for (const BlockRun& run : target.runs) {
    const std::byte* from = sums + run.row * sums_stride;
    std::int64_t at = run.offset + first_column;
    for (std::int64_t r = 0; r < run.count; r += 2, from += 2 * sums_stride, at += 2 * stride) {
      const bool is_pair = r + 1 < run.count;
      const __m512i first = rounded_words<is_bounded, has_residual>(constants, from, residuals, at);
      const __m512i second = is_pair ? rounded_words<is_bounded, has_residual>(constants, from + sums_stride,
                                                                               residuals, at + stride)
                                     : first;
      const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(results + at), _mm512_castsi512_si256(bytes));
      if (is_pair)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(results + at + stride),
                            _mm512_extracti64x4_epi64(bytes, 1));
    }
  }
}

// Any number of columns.
template <MatrixType type, class T>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]] void finish_rows(
    const BlockEpilogue& epilogue, const std::byte* sums, const BlockTarget& target) {
  Constants constants;
  constants.inverse_scale = _mm512_set1_ps(1 / epilogue.result.scale);
  constants.zero = _mm512_set1_ps(epilogue.result.zero);
  constants.residual_scale = _mm512_set1_ps(epilogue.residual_values.scale);
  constants.residual_zero = _mm512_set1_ps(epilogue.residual_values.zero);
  const int halves = target.columns > 16 ? 2 : 1;
  for (int h = 0; h < halves; ++h) {
    const std::int64_t count = target.columns - h * 16, first = target.first_column + h * 16;
    const auto mask = static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1);
    constants.masks[h] = mask;
    constants.columns[h] = {
        epilogue.scale ? _mm512_maskz_loadu_ps(mask, epilogue.scale + first) : _mm512_set1_ps(1),
        epilogue.bias ? _mm512_maskz_loadu_ps(mask, epilogue.bias + first) : _mm512_setzero_ps()};
  }
  const bool relu = epilogue.activation == FusedActivation::relu;
  auto* const results = reinterpret_cast<T*>(target.result);
  const T* const residuals = reinterpret_cast<const T*>(epilogue.residual);
  for (const BlockRun& run : target.runs)
    for (std::int64_t r = 0; r < run.count; ++r)
      for (int h = 0; h < halves; ++h) {
        const std::byte* const from = sums + (run.row + r) * sums_stride + h * 64;
        const std::int64_t at = run.offset + r * target.row_stride + target.first_column + h * 16;
        const ColumnConstants& columns = constants.columns[h];
        const __mmask16 mask = constants.masks[h];
        __m512 values;
        if constexpr (type == MatrixType::bf16)
          values = _mm512_add_ps(_mm512_loadu_ps(from), columns.bias);
        else
          values = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(from)), columns.scale, columns.bias);
        if (residuals) values = _mm512_add_ps(values, load_stored(residuals + at, mask, constants));
        if (relu) values = _mm512_max_ps(_mm512_setzero_ps(), values);  // keeps NaN, the second operand
        store(results + at, mask, values, constants);
      }
}

template <MatrixType type>
void finish(const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target) {
  const auto* const from = static_cast<const std::byte*>(sums);
  const bool is_whole = target.columns == block_columns;
  if (epilogue.dtype == DType::bf16)
    return is_whole ? finish_lines<type>(epilogue, from, target)
                    : finish_rows<type, BFloat16>(epilogue, from, target);
  if (epilogue.dtype == DType::f32) return finish_rows<type, float>(epilogue, from, target);
  expect(epilogue.dtype == DType::u8 && type == MatrixType::int8);
  if (!is_whole) return finish_rows<MatrixType::int8, std::uint8_t>(epilogue, from, target);
  if (epilogue.residual)
    epilogue.is_bounded ? finish_bytes<true, true>(epilogue, from, target)
                        : finish_bytes<false, true>(epilogue, from, target);
  else
    epilogue.is_bounded ? finish_bytes<true, false>(epilogue, from, target)
                        : finish_bytes<false, false>(epilogue, from, target);
}

}  // namespace

void finish_block_x86(const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target) {
  if (epilogue.type == MatrixType::bf16)
    finish<MatrixType::bf16>(epilogue, sums, target);
  else
    finish<MatrixType::int8>(epilogue, sums, target);
}

}  // namespace tandem::detail

#else

namespace tandem::detail {

void finish_block_x86(const BlockEpilogue&, const void*, const BlockTarget&) {
  expect(false);
}

}  // namespace tandem::detail

#endif
