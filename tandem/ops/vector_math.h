// exp, sigmoid and tanh in f32 for the CPU, without branches or table lookups, so that the compiler
// vectorizes loops that call them: range reduction and a polynomial (coefficients from Cephes). Within 2 ulp
// of the exact value, and correct for ±∞, NaN, overflow and underflow.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::detail {

// condition ? yes : no by bit masks; for a conditional expression GCC may emit a branch.
[[gnu::always_inline]] constexpr float vector_select(bool condition, float yes, float no) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(yes) & mask) |
                              (std::bit_cast<std::uint32_t>(no) & ~mask));
}

[[gnu::always_inline]] constexpr float vector_abs(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
}

// `magnitude` with the sign of `sign`; magnitude must not be negative.
[[gnu::always_inline]] constexpr float vector_with_sign(float magnitude, float sign) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) |
                              (std::bit_cast<std::uint32_t>(sign) & 0x80000000u));
}

[[gnu::always_inline]] constexpr float vector_exp(float x) {
  // Outside this range the result is 0 or ∞. Comparisons with NaN are false, so NaN propagates.
  x = vector_select(x < -104.0f, -104.0f, x);
  x = vector_select(x > 89.0f, 89.0f, x);
  // x = n ln 2 + r. Adding 1.5 · 2²³ rounds to an integer, which is then in the low bits.
  constexpr float rounder = 12582912.0f;
  const float shifted = x * 1.44269504088896341f + rounder;
  const float n = shifted - rounder;
  float r = x - n * 0.693359375f;  // exact: ln 2 in two parts
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2ⁿ as two factors: n ranges from −150 to 128, which exceeds one f32 exponent; only the second product
  // rounds.
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(rounder));
  const std::int32_t half = exponent >> 1, rest = exponent - half;
  const float scale_a = std::bit_cast<float>((static_cast<std::uint32_t>(half) + 127u) << 23);
  const float scale_b = std::bit_cast<float>((static_cast<std::uint32_t>(rest) + 127u) << 23);
  return p * scale_a * scale_b;
}

// exp(−|x|) cannot overflow, and for x < 0 it avoids the cancellation in 1 − sigmoid(−x).
[[gnu::always_inline]] constexpr float vector_sigmoid(float x) {
  const float e = vector_exp(-vector_abs(x));
  return vector_select(x < 0.0f, e, 1.0f) / (1.0f + e);
}

// An odd polynomial near 0, where 1 − 2 / (e²ˣ + 1) would cancel.
[[gnu::always_inline]] constexpr float vector_tanh(float x) {
  const float a = vector_abs(x);
  const float far = 1.0f - 2.0f / (vector_exp(a + a) + 1.0f);
  const float z = a * a;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * a + a;
  return vector_with_sign(vector_select(a < 0.625f, near, far), x);
}

}  // namespace tandem::detail
