#include "tandem/core/recycling_allocator.h"

#include <bit>
#include <mutex>
#include <new>

namespace tandem::detail {
namespace {

// Under AddressSanitizer nothing is kept, because that would hide errors.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t max_kept_bytes = 0;
#else
constexpr std::size_t max_kept_bytes = 1 << 16;
#endif

// A free block, in its own memory.
struct FreeBlock {
  FreeBlock* next;
};

// The free blocks of one power of two.
struct Bin {
  std::mutex mutex;
  FreeBlock* first = nullptr;
};

std::size_t block_bytes(std::size_t bytes) {
  return std::bit_ceil(bytes < sizeof(FreeBlock) ? sizeof(FreeBlock) : bytes);
}

// Never destroyed, because static objects may free their memory later.
Bin& bin_of(std::size_t block) {
  static Bin* const bins = new Bin[17];  // up to 1 << 16
  return bins[std::countr_zero(block)];
}

}  // namespace

void* allocate_recycled(std::size_t bytes) {
  if (bytes > max_kept_bytes) return ::operator new(bytes);
  const std::size_t block = block_bytes(bytes);
  Bin& bin = bin_of(block);
  {
    const std::lock_guard lock(bin.mutex);
    if (FreeBlock* const free = bin.first) {
      bin.first = free->next;
      return free;
    }
  }
  return ::operator new(block);
}

void free_recycled(void* memory, std::size_t bytes) noexcept {
  if (bytes > max_kept_bytes) return ::operator delete(memory);
  Bin& bin = bin_of(block_bytes(bytes));
  const std::lock_guard lock(bin.mutex);
  bin.first = new (memory) FreeBlock{bin.first};
}

}  // namespace tandem::detail
