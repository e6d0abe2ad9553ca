#include "tandem/device/pinned.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

std::byte* allocate_pages(std::size_t bytes) {
  constexpr std::size_t page = 1 << 16;
  void* const memory = std::aligned_alloc(page, (std::max(bytes, page) + page - 1) / page * page);
  check(memory != nullptr, "[pin] expected room for {} bytes, got none", bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace

PinnedMemory::PinnedMemory(std::span<std::byte> memory, Device device) : memory_(memory), device_(device) {
  on_backend(device_, "pin", [&]<Backend B>() { pin_memory<B>(memory_.data(), memory_.size()); });
}

PinnedMemory::~PinnedMemory() {
  on_backend(device_, "pin", [&]<Backend B>() { unpin_memory<B>(memory_.data()); });
}

PinnedBuffer::PinnedBuffer(std::size_t bytes, Device device)
    : size_(bytes), memory_(allocate_pages(bytes)), pinned_({memory_.get(), bytes}, device) {}

}  // namespace tandem
