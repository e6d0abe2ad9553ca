// bf16 on the CPU, for kernels that compute whole tensors in f32: copies in and out, from the pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/buffer.h"
#include "tandem/ops/cast.h"

namespace tandem {

template <class T>
Buffer scratch_of(std::int64_t elements) {
  return Buffer(static_cast<std::size_t>(elements) * sizeof(T), current_stream(cpu_device));
}

template <class T>
T* as(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.data());
}

// An empty buffer for null.
inline Buffer to_f32(const std::byte* bf16, std::int64_t elements) {
  if (!bf16) return {};
  Buffer wide = scratch_of<float>(elements);
  cast_kernel<Backend::cpu>(DType::f32, DType::bf16, make_layout<2>(Shape{elements}, {Dims{1}, Dims{1}}),
                            wide.data(), bf16, current_stream(cpu_device));
  return wide;
}

inline void to_bf16(std::byte* bf16, const Buffer& wide, std::int64_t elements) {
  cast_kernel<Backend::cpu>(DType::bf16, DType::f32, make_layout<2>(Shape{elements}, {Dims{1}, Dims{1}}),
                            bf16, wide.data(), current_stream(cpu_device));
}

}  // namespace tandem
