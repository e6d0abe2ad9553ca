// Device memory that two processes use: one exports a handle, the other opens it.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "tandem/device/buffer.h"
#include "tandem/device/device.h"

namespace tandem {

// CUDA's handle of a block of memory, valid in other processes while the block exists.
using MemoryHandle = std::array<std::byte, 64>;

// Device memory that other processes can open.
class SharedBuffer {
 public:
  // On a GPU. Throws Error when there is not enough memory, or for the CPU.
  SharedBuffer(std::size_t bytes, Device device);

  std::byte* data() const { return buffer_.data(); }
  std::size_t size() const { return size_; }
  MemoryHandle handle() const;

  // Copies to and from host memory, complete when the call returns.
  void write(std::size_t offset, std::span<const std::byte> values);
  void read(std::size_t offset, std::span<std::byte> values) const;

 private:
  Buffer buffer_;
  std::size_t size_;
};

// Opens the memory behind a handle until it is destroyed.
class OpenedBuffer {
 public:
  OpenedBuffer(const MemoryHandle& handle, Device device);
  ~OpenedBuffer();
  OpenedBuffer(const OpenedBuffer&) = delete;
  OpenedBuffer& operator=(const OpenedBuffer&) = delete;

  std::byte* data() const { return data_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
};

// Waits for all work on the default stream of the device.
void synchronize_default_stream(Device device);

}  // namespace tandem
