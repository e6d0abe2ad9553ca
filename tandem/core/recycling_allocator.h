// An allocator that keeps freed blocks for the next request of their size, so that work which repeats itself
// (a training step, a prediction) stops allocating. For small objects; tensors' elements have pools of their
// own (device/buffer.h).
#pragma once

#include <cstddef>
#include <vector>

namespace tandem::detail {

// At least `bytes` bytes, aligned as by operator new. Any thread may free them, with the same `bytes`.
void* allocate_recycled(std::size_t bytes);
void free_recycled(void* memory, std::size_t bytes) noexcept;

template <class T>
struct RecyclingAllocator {
  using value_type = T;

  RecyclingAllocator() = default;
  template <class U>
  RecyclingAllocator(const RecyclingAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_recycled(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { free_recycled(memory, count * sizeof(T)); }
  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

template <class T>
using RecycledVector = std::vector<T, RecyclingAllocator<T>>;

}  // namespace tandem::detail
