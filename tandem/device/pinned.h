// Pinned (page-locked) host memory, which a GPU copies at full speed and concurrently with kernels.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/device/device.h"

namespace tandem {

// Pins memory that it does not own, until it is destroyed. Does nothing for the CPU.
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
