// Whether numbers are finite, of many tensors at once: what a training loop asks of all its weights after
// every epoch, so it costs one pass over them and, on CUDA, one launch for a hundred tensors.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/core/dtype.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// No NaN and no infinity in any of them. They may differ in dtype and shape, not in their device; integers
// are always finite, and so is nothing at all.
bool all_finite(std::span<const Tensor> tensors);

// By the bits, which no compiler flag for fast mathematics can take away: an exponent of ones.
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

// Waits for the answer.
template <Backend B>
bool all_finite_kernel(std::span<const FloatArray> arrays, StreamView stream);

}  // namespace tandem
