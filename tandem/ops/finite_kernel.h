// Kernel of all_finite (finite.h).
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

// Tests the exponent bits, which works even under -ffast-math.
template <class T>
constexpr bool is_finite_number(T value) {
  if constexpr (std::same_as<T, BFloat16>) {
    return (value.bits & 0x7f80u) != 0x7f80u;
  } else if constexpr (std::same_as<T, float>) {
    return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
  } else {
    constexpr std::uint64_t exponent = 0x7ff0000000000000u;
    return (std::bit_cast<std::uint64_t>(value) & exponent) != exponent;
  }
}

struct FloatArray {
  const std::byte* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;  // f32, f64 or bf16
};

// Synchronizes with the stream.
template <Backend B>
bool all_finite_kernel(std::span<const FloatArray> arrays, StreamView stream);

}  // namespace tandem::detail
