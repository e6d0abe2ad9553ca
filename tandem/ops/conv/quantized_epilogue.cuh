// For CUDA sources only: from the sums of 8-bit convolutions to rounded bytes, with the roundings of the
// CPU's AVX-512 kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "tandem/ops/conv/quantized_conv_kernel.h"

namespace tandem::detail {

// 1.5 · 2²³: f32 beside it are whole numbers, and its bits plus n are the bits of itself plus n. With it
// small integers are converted by additions, of which a multiprocessor does more per cycle than of
// conversions.
inline constexpr float whole_numbers = 12582912.0f;
inline constexpr int whole_numbers_bits = 0x4B400000;

// Whether all sums and results are small enough for it.
inline bool is_bounded_epilogue(const QuantizedConv2d& conv, const QuantizedEpilogue& epilogue) {
  return conv.max_sum < 4194304.0f && largest_result(conv, epilogue) < 8e6f;  // false for NaN
}

// value / scale to nearest, ties to even, plus zero, clamped to 0 … 255, as f32; NaN becomes 0.
__device__ inline float quantized_value(float value, float inverse_scale, float zero) {
  const float clamped = fminf(fmaxf(__fmul_rn(value, inverse_scale), -zero), 255 - zero);
  return __fsub_rn(__fadd_rn(clamped, whole_numbers), whole_numbers - zero);
}

// Physical column n of a product, which a thread has beside other columns, belongs to the filter that makes a
// thread's columns adjacent bytes of the result.
inline constexpr int filter_of_column(int n, int columns) {
  const int block = n / 8, quarter = n % 8 / 2, odd = n % 2;
  return quarter * (columns / 4) + 2 * block + odd;
}

struct ColumnNumbers {
  float scale, shift;
};
__device__ inline ColumnNumbers column_numbers(const QuantizedEpilogue& epilogue, float scale, float bias) {
  return {__fmul_rn(scale, epilogue.inverse),
          __fsub_rn(__fmaf_rn(bias, epilogue.inverse, epilogue.zero), epilogue.residual_shift)};
}

// What a sum starts with.
template <bool is_bounded>
__device__ inline int first_sum() {
  return is_bounded ? whole_numbers_bits : 0;
}

template <bool is_bounded>
__device__ inline float value_of_sum(int sum) {
  return is_bounded ? __fsub_rn(__int_as_float(sum), whole_numbers) : __int2float_rn(sum);
}

// Byte i of a word: as the last byte of 2²³, which is then subtracted.
__device__ inline float byte_of(std::uint32_t word, int i) {
  return __fsub_rn(__int_as_float(static_cast<int>(
                       __byte_perm(word, 0x4B000000u, 0x7540u | static_cast<std::uint32_t>(i)))),
                   8388608.0f);
}

template <bool is_bounded>
__device__ inline int rounded(float value) {
  return is_bounded ? __float_as_int(__fadd_rn(value, whole_numbers)) - whole_numbers_bits
                    : __float2int_rn(value);
}

// Clamped to 0 … 255.
__device__ inline std::uint32_t clamped_bytes(const int (&value)[4]) {
  std::uint32_t high, all;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(value[3]), "r"(value[2]), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(value[1]), "r"(value[0]), "r"(high));
  return all;
}

template <bool is_bounded>
__device__ inline std::uint32_t rounded_bytes(const float (&value)[4]) {
  const int whole[4] = {rounded<is_bounded>(value[0]), rounded<is_bounded>(value[1]),
                        rounded<is_bounded>(value[2]), rounded<is_bounded>(value[3])};
  return clamped_bytes(whole);
}

// factor · scale + shift, rounded to bytes, of numbers of any size without conversions: `scale` and `shift`
// are 256th parts, and a sum that is clamped to 0 … 1 by the instruction itself. NaN becomes 0.
__device__ inline std::uint32_t saturated_bytes(const float (&factor)[4], const float (&scale)[4],
                                                const float (&shift)[4]) {
  int whole[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float part;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(part) : "f"(factor[i]), "f"(scale[i]), "f"(shift[i]));
    whole[i] = __float_as_int(__fmaf_rn(part, 256, whole_numbers)) - whole_numbers_bits;
  }
  return clamped_bytes(whole);
}

}  // namespace tandem::detail
