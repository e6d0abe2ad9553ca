// Host memory a GPU copies from at full speed and beside its other work, because its pages stay where they
// are.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/device/device.h"

namespace tandem {

// Pins memory somebody else owns, for as long as it lives. For the CPU there is nothing to do.
class PinnedMemory {
 public:
  PinnedMemory(std::span<std::byte> memory, Device device);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

 private:
  std::span<std::byte> memory_;
  Device device_;
};

}  // namespace tandem
