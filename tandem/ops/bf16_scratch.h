// Scratch memory of CPU kernels, and f32 copies of bf16 operands for kernels that compute in f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/buffer.h"
#include "tandem/ops/cast_kernel.h"

namespace tandem::detail {

// Uninitialized memory for `elements` values of T, from the pool.
template <class T>
Buffer make_scratch(std::int64_t elements) {
  return Buffer(static_cast<std::size_t>(elements) * sizeof(T), current_stream(cpu_device));
}

template <class T>
T* as(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

// An f32 copy of a dense bf16 array; an empty buffer for null.
inline Buffer to_f32(const std::byte* bf16, std::int64_t elements) {
  if (!bf16) return {};
  Buffer wide = make_scratch<float>(elements);
  cast_kernel<Backend::cpu>(DType::f32, DType::bf16, make_layout<2>(Shape{elements}, {Dims{1}, Dims{1}}),
                            wide.data(), bf16, current_stream(cpu_device));
  return wide;
}

// Rounds a dense f32 buffer to bf16.
inline void to_bf16(std::byte* bf16, const Buffer& wide, std::int64_t elements) {
  cast_kernel<Backend::cpu>(DType::bf16, DType::f32, make_layout<2>(Shape{elements}, {Dims{1}, Dims{1}}),
                            bf16, wide.data(), current_stream(cpu_device));
}

}  // namespace tandem::detail
