// Pinned (page-locked) host memory, which a GPU copies at full speed and concurrently with kernels.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
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

// Host memory that a device copies from and to, in pages of its own: a page can be pinned once only.
class PinnedBuffer {
 public:
  // Throws Error when there is not enough memory.
  PinnedBuffer(std::size_t bytes, Device device);

  std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
  PinnedMemory pinned_;
};

}  // namespace tandem
