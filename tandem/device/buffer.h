// Device memory. Buffers come from a pool that keeps freed blocks, so a training loop allocates nothing once
// it has reached its steady state. A freed block is reused only on the stream it was allocated for, which is
// safe without synchronization. Memory that a second stream uses must be kept alive until that stream is
// done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tandem/device/device.h"
#include "tandem/device/stream.h"

namespace tandem {

/// Owns a block of memory on a device, or keeps another owner's. Different threads may create and destroy
/// buffers concurrently.
class Buffer {
 public:
  Buffer() = default;
  /// Allocates uninitialized memory from the pool of the stream. Throws Error, with the requested and the
  /// free size, when there is not enough.
  Buffer(std::size_t bytes, StreamView stream);
  /// Memory of somebody else, kept by `owner` until this buffer is destroyed.
  Buffer(std::byte* data, std::size_t bytes, Device device, std::shared_ptr<void> owner);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  Device device() const { return stream_.device; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  StreamView stream_;
  std::shared_ptr<void> owner_;  // null: the pool
};

/// Counters of a device's memory pool.
struct PoolStatistics {
  std::int64_t system_allocations = 0;  ///< calls of cudaMalloc or malloc
  std::int64_t bytes_in_use = 0;
  std::int64_t bytes_cached = 0;
};

/// The current counters of the device's pool.
PoolStatistics pool_statistics(Device device);

/// Returns unused blocks of a device to the system, except those of streams with a retained pool.
void release_cached_memory(Device device);

/// Returns the unused blocks of one stream to the system and ends the effect of retain_pool().
void release_cached_memory(StreamView stream);

/// Keeps the blocks of `stream` from being returned with those of its device: a captured graph uses them even
/// while no Buffer owns them. They are returned when the stream is destroyed.
void retain_pool(StreamView stream);

}  // namespace tandem
