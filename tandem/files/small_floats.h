// Floating-point formats of 8 and 16 bits that only files have here. Every value is exact in f32.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem {

// IEEE half precision.
inline float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest < 0x400u)
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24f) | sign);
  return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
}

// Five bits of exponent and two of fraction: the upper byte of a half.
inline float from_float8_e5m2(std::uint8_t bits) {
  return from_half(static_cast<std::uint16_t>(bits << 8));
}

// Four bits of exponent and three of fraction, without infinities: all ones are NaN.
inline float from_float8_e4m3(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80u) << 24, rest = bits & 0x7fu;
  if (rest == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (rest < 8u)
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-9f) | sign);
  return std::bit_cast<float>(sign | ((rest << 20) + (120u << 23)));
}

}  // namespace tandem
