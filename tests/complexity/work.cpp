// Not instrumented itself. The memory functions replace those of the C library for the whole program, shared
// libraries included: a search in a loop, or a vector that grows by one, is counted wherever it happens.
#include "tests/complexity/work.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> blocks{0}, moved{0}, allocated{0};

// The compiler must not turn these loops into calls of the functions that they implement.
void count(std::size_t size) {
  moved.fetch_add(size, std::memory_order_relaxed);
}

void* allocate(std::size_t size, std::size_t alignment) {
  allocated.fetch_add(size, std::memory_order_relaxed);
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" {
void __sanitizer_cov_trace_pc() {  // NOLINT: the name is the compiler's
  blocks.fetch_add(1, std::memory_order_relaxed);
}

void* memcpy(void* __restrict to, const void* __restrict from, std::size_t size) noexcept {
  count(size);
  void* const result = to;
  asm volatile("" : : : "memory");
  auto* out = static_cast<volatile unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < size; ++i) out[i] = in[i];
  return result;
}
void* memmove(void* to, const void* from, std::size_t size) noexcept {
  count(size);
  auto* out = static_cast<volatile unsigned char*>(to);
  const auto* in = static_cast<const volatile unsigned char*>(from);
  if (out < in)
    for (std::size_t i = 0; i < size; ++i) out[i] = in[i];
  else
    for (std::size_t i = size; i-- > 0;) out[i] = in[i];
  return to;
}
void* memset(void* to, int value, std::size_t size) noexcept {
  count(size);
  auto* out = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(value);
  return to;
}
int memcmp(const void* a, const void* b, std::size_t size) noexcept {
  const auto* left = static_cast<const volatile unsigned char*>(a);
  const auto* right = static_cast<const volatile unsigned char*>(b);
  std::size_t i = 0;
  int difference = 0;
  for (; i < size && difference == 0; ++i) difference = left[i] - right[i];
  count(i);
  return difference;
}
void* memchr(const void* in, int value, std::size_t size) noexcept {
  const auto* bytes = static_cast<const volatile unsigned char*>(in);
  std::size_t i = 0;
  while (i < size && bytes[i] != static_cast<unsigned char>(value)) ++i;
  count(i);
  return i < size ? const_cast<unsigned char*>(static_cast<const unsigned char*>(in)) + i : nullptr;
}
}

// NOLINTBEGIN: replacements of the standard's functions
void* operator new(std::size_t size) {
  return allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
// NOLINTEND

namespace tandem {

Work work_so_far() {
  return {blocks + moved / 16, allocated};
}

}  // namespace tandem
