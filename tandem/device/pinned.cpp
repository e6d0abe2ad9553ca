#include "tandem/device/pinned.h"

#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {

PinnedMemory::PinnedMemory(std::span<std::byte> memory, Device device) : memory_(memory), device_(device) {
  on_backend(device_, "pin", [&]<Backend B>() { pin_memory<B>(memory_.data(), memory_.size()); });
}

PinnedMemory::~PinnedMemory() {
  on_backend(device_, "pin", [&]<Backend B>() { unpin_memory<B>(memory_.data()); });
}

}  // namespace tandem
