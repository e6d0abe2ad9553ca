// Memory. A Buffer owns bytes on a device, taken from a pool that keeps freed blocks, so that a loop in its
// steady state asks the system for nothing. A freed block is handed out again only to the stream it was used
// on, which makes reuse safe without waiting; memory used on a second stream must be kept alive until that
// stream is done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/device.h"
#include "tandem/device/stream.h"

namespace tandem {

class Buffer {
 public:
  Buffer() = default;
  // Throws Error, naming the size and what is free, when the memory is not there.
  Buffer(std::size_t bytes, StreamView stream);
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
};

struct PoolStatistics {
  std::int64_t system_allocations = 0;  // times the system was asked
  std::int64_t bytes_in_use = 0;
  std::int64_t bytes_cached = 0;
};

PoolStatistics pool_statistics(Device device);

// Gives blocks nobody uses back to the system: a device's, or only those of one stream.
void release_cached_memory(Device device);
void release_cached_memory(StreamView stream);

// A graph uses the stream's blocks, also those nobody holds: from now on they are not given back with the
// device's, only with the stream's own, which happens when it ends.
void keep_cached_memory(StreamView stream);

}  // namespace tandem
