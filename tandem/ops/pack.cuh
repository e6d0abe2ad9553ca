// Aligned vectors in CUDA kernels: a few elements that one instruction loads or stores.
#pragma once

#include <cstdint>

namespace tandem::detail {

template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
  T value[count];
};

// Whether `width` elements at `p` can be accessed as a Pack.
template <int width, class T>
__host__ __device__ bool is_aligned(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % (width * sizeof(T)) == 0;
}

template <int width, class T>
__device__ Pack<T, width> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, width>*>(from);
}

template <int width, class T>
__device__ void store_pack(T* to, const Pack<T, width>& pack) {
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

}  // namespace tandem::detail
