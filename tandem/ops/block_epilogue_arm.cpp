#include <concepts>

#include "tandem/core/check.h"
#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/block_product.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace tandem::detail {
namespace {

// Sixteen columns.
struct Lanes {
  float32x4_t values[4];
};

[[gnu::always_inline]] inline Lanes load_lanes(const float* from) {
  return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
}
[[gnu::always_inline]] inline Lanes load_lanes(const std::int32_t* from) {
  return {{vcvtq_f32_s32(vld1q_s32(from)), vcvtq_f32_s32(vld1q_s32(from + 4)),
           vcvtq_f32_s32(vld1q_s32(from + 8)), vcvtq_f32_s32(vld1q_s32(from + 12))}};
}
[[gnu::always_inline]] inline Lanes load_lanes(const std::uint8_t* from) {
  const uint8x16_t stored = vld1q_u8(from);
  const uint16x8_t low = vmovl_u8(vget_low_u8(stored)), high = vmovl_high_u8(stored);
  return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
           vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))}};
}
[[gnu::always_inline]] inline Lanes load_lanes(const BFloat16* from) {
  const auto* const bits = reinterpret_cast<const std::uint16_t*>(from);
  const uint16x8_t low = vld1q_u16(bits), high = vld1q_u16(bits + 8);
  return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)),
           vreinterpretq_f32_u32(vshll_high_n_u16(low, 16)),
           vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
           vreinterpretq_f32_u32(vshll_high_n_u16(high, 16))}};
}

// The bits of a bf16 in the upper half: nearest, ties to even; NaN stays NaN.
[[gnu::always_inline]] inline uint32x4_t rounded_bits(float32x4_t value) {
  const uint32x4_t word = vreinterpretq_u32_f32(value),
                   odd = vandq_u32(vshrq_n_u32(word, 16), vdupq_n_u32(1)),
                   rounded = vaddq_u32(vaddq_u32(word, vdupq_n_u32(0x7fff)), odd);
  return vbslq_u32(vceqq_f32(value, value), rounded, vorrq_u32(word, vdupq_n_u32(0x400000)));
}

// How results are rounded to bf16: by integer instructions, or by that of CPUs with bf16.
enum class Rounding { integer, bf16 };

template <Rounding rounding>
[[gnu::always_inline]] inline void store_lanes(float* to, const Lanes& lanes) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, lanes.values[i]);
}
template <Rounding rounding>
[[gnu::always_inline]] inline void store_lanes(BFloat16* to, const Lanes& lanes) {
  auto* const bits = reinterpret_cast<std::uint16_t*>(to);
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    const float32x4_t low = lanes.values[i], high = lanes.values[i + 1];
    if constexpr (rounding == Rounding::bf16) {
      uint16x8_t rounded;
      asm("bfcvtn %0.4h, %1.4s" : "=w"(rounded) : "w"(low));
      asm("bfcvtn2 %0.8h, %1.4s" : "+w"(rounded) : "w"(high));
      vst1q_u16(bits + 4 * i, rounded);
    } else {
      vst1q_u16(bits + 4 * i, vshrn_high_n_u32(vshrn_n_u32(rounded_bits(low), 16), rounded_bits(high), 16));
    }
  }
}
// Of values that are scaled and shifted. The narrowing instructions clamp to 0 … 255.
template <Rounding rounding>
[[gnu::always_inline]] inline void store_lanes(std::uint8_t* to, const Lanes& lanes) {
  int32x4_t whole[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) whole[i] = vcvtnq_s32_f32(lanes.values[i]);
  const int16x8_t low = vqmovn_high_s32(vqmovn_s32(whole[0]), whole[1]),
                  high = vqmovn_high_s32(vqmovn_s32(whole[2]), whole[3]);
  vst1q_u8(to, vqmovun_high_s16(vqmovun_s16(low), high));
}

template <Rounding rounding, class Sum, class T>
[[gnu::always_inline]] inline void finish_columns(const BlockEpilogue& epilogue, const Sum* sums,
                                                  const BlockTarget& target, std::int64_t first) {
  constexpr bool is_quantized = std::same_as<T, std::uint8_t>;
  const std::int64_t column = target.first_column + first;
  Lanes scale, bias;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) scale.values[i] = vdupq_n_f32(1), bias.values[i] = vdupq_n_f32(0);
  if (epilogue.scale) scale = load_lanes(epilogue.scale + column);
  if (epilogue.bias) bias = load_lanes(epilogue.bias + column);
  const float residual_scale = is_quantized ? epilogue.residual_values.scale : 1;
  if (is_quantized && epilogue.residual) {
    const float shift = residual_scale * epilogue.residual_values.zero;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) bias.values[i] = vsubq_f32(bias.values[i], vdupq_n_f32(shift));
  }
  const float32x4_t inverse_scale = vdupq_n_f32(1 / epilogue.result.scale),
                    zero = vdupq_n_f32(epilogue.result.zero), residual_factor = vdupq_n_f32(residual_scale);
  const bool relu = epilogue.activation == FusedActivation::relu;
  for (const BlockRun& run : target.runs) {
    T* to = reinterpret_cast<T*>(target.result) + run.offset + column;
    const T* residual =
        epilogue.residual ? reinterpret_cast<const T*>(epilogue.residual) + run.offset + column : nullptr;
    const Sum* from = sums + run.row * block_columns + first;
    for (std::int64_t r = 0; r < run.count; ++r, from += block_columns, to += target.row_stride) {
      Lanes lanes = load_lanes(from);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        lanes.values[i] = vfmaq_f32(bias.values[i], lanes.values[i], scale.values[i]);
      if (residual) {
        const Lanes added = load_lanes(residual);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          lanes.values[i] = vfmaq_f32(lanes.values[i], added.values[i], residual_factor);
        residual += target.row_stride;
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (relu) lanes.values[i] = vmaxq_f32(lanes.values[i], vdupq_n_f32(0));  // keeps NaN
        if constexpr (is_quantized) lanes.values[i] = vfmaq_f32(zero, lanes.values[i], inverse_scale);
      }
      store_lanes<rounding>(to, lanes);
    }
  }
}

template <class Sum, class T>
void finish(const BlockEpilogue& epilogue, const Sum* sums, const BlockTarget& target) {
  for (std::int64_t first = 0; first < target.columns; first += 16)
    finish_columns<Rounding::integer, Sum, T>(epilogue, sums, target, first);
}

#if defined(__clang__)
[[gnu::target("bf16")]]
#else
[[gnu::target("arch=armv8.2-a+bf16")]]
#endif
void finish_as_bf16(const BlockEpilogue& epilogue, const float* sums, const BlockTarget& target) {
  for (std::int64_t first = 0; first < target.columns; first += 16)
    finish_columns<Rounding::bf16, float, BFloat16>(epilogue, sums, target, first);
}

template <class Sum>
void finish_dtype(const BlockEpilogue& epilogue, const Sum* sums, const BlockTarget& target) {
  if (epilogue.dtype == DType::bf16) return finish<Sum, BFloat16>(epilogue, sums, target);
  if (epilogue.dtype == DType::f32) return finish<Sum, float>(epilogue, sums, target);
  finish<Sum, std::uint8_t>(epilogue, sums, target);
}

}  // namespace

bool finish_block_arm(const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target) {
  static const bool has_bf16 = available_matrix_isas(MatrixType::bf16).back() == MatrixIsa::neon;
  if (target.columns % 16 != 0) return false;
  if (epilogue.type == MatrixType::int8)
    finish_dtype(epilogue, static_cast<const std::int32_t*>(sums), target);
  else if (has_bf16 && epilogue.dtype == DType::bf16)
    finish_as_bf16(epilogue, static_cast<const float*>(sums), target);
  else
    finish_dtype(epilogue, static_cast<const float*>(sums), target);
  return true;
}

}  // namespace tandem::detail

#else

namespace tandem::detail {

bool finish_block_arm(const BlockEpilogue&, const void*, const BlockTarget&) {
  return false;
}

}  // namespace tandem::detail

#endif
