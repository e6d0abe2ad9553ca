#include "tandem/device/buffer.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// Under AddressSanitizer every block is allocated by the system at its exact size, because a pool would hide
// errors.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

// Rounds up to a multiple of 1/8 of a power of two, so that similar sizes share blocks. Wastes at most 1/8.
std::size_t rounded_size(std::size_t bytes) {
  if (!caching) return bytes;
  const std::size_t step = std::max<std::size_t>(256, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

class MemoryPool {
 public:
  void* allocate(std::size_t bytes, StreamView stream) {
    const std::size_t size = rounded_size(bytes);
    std::lock_guard lock(mutex_);
    auto& bin = bins_[{stream.handle, size}];
    void* memory = nullptr;
    if (!bin.empty()) {
      memory = bin.back();
      bin.pop_back();
      statistics_.bytes_cached -= static_cast<std::int64_t>(size);
    } else {
      memory = allocate_from_system(size, stream.device);
    }
    statistics_.bytes_in_use += static_cast<std::int64_t>(size);
    return memory;
  }

  void free(void* memory, std::size_t bytes, StreamView stream) noexcept {
    const std::size_t size = rounded_size(bytes);
    std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= static_cast<std::int64_t>(size);
    try {
      if (caching) {
        bins_[{stream.handle, size}].push_back(memory);
        statistics_.bytes_cached += static_cast<std::int64_t>(size);
        return;
      }
    } catch (...) {  // the bin cannot grow: return the block to the system
    }
    return_to_system(memory, size, stream.device);
  }

  void release(Device device, const StreamView* only) {
    std::lock_guard lock(mutex_);
    if (only) retained_.erase(only->handle);
    release_locked(device, only);
  }

  void retain(StreamView stream) {
    std::lock_guard lock(mutex_);
    retained_.insert(stream.handle);
  }

  PoolStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  void* allocate_from_system(std::size_t size, Device device) {
    return on_backend(device, "allocate", [&]<Backend B>() {
      void* memory = system_allocate<B>(device, size);
      if (!memory) {
        release_locked(device, nullptr);
        memory = system_allocate<B>(device, size);
      }
      constexpr double gib = 1 << 30;
      if (!memory)
        fail("[allocate] expected room for {:.2f} GiB on {}, got {:.2f} GiB free",
             static_cast<double>(size) / gib, device.to_string(),
             static_cast<double>(available_memory<B>(device)) / gib);
      ++statistics_.system_allocations;
      return memory;
    });
  }

  void return_to_system(void* memory, std::size_t size, Device device) noexcept {
    on_backend(device, "free", [&]<Backend B>() { system_free<B>(device, memory, size); });
  }

  void release_locked(Device device, const StreamView* only) noexcept {
    for (auto& [key, bin] : bins_) {
      if (only ? key.first != only->handle : retained_.contains(key.first)) continue;
      for (void* memory : bin) {
        return_to_system(memory, key.second, device);
        statistics_.bytes_cached -= static_cast<std::int64_t>(key.second);
      }
      bin.clear();
    }
  }

  std::mutex mutex_;
  std::map<std::pair<void*, std::size_t>, std::vector<void*>> bins_;  // by stream and size
  std::set<void*> retained_;                                          // streams
  PoolStatistics statistics_;
};

// Never destroyed, because static buffers may be destroyed later than a static pool would be.
MemoryPool& pool_of(Device device) {
  static auto& cpu_pool = *new MemoryPool;
  if (!device.is_cuda()) return cpu_pool;
  static std::mutex mutex;
  static auto& cuda_pools = *new std::deque<MemoryPool>;
  std::lock_guard lock(mutex);
  while (cuda_pools.size() <= static_cast<std::size_t>(device.index)) cuda_pools.emplace_back();
  return cuda_pools[device.index];
}

}  // namespace

Buffer::Buffer(std::size_t bytes, StreamView stream) : size_(bytes), stream_(stream) {
  if (bytes > 0) data_ = static_cast<std::byte*>(pool_of(stream.device).allocate(bytes, stream));
}

Buffer::Buffer(std::byte* data, std::size_t bytes, Device device, std::shared_ptr<void> owner)
    : data_(data), size_(bytes), stream_(current_stream(device)), owner_(std::move(owner)) {}

Buffer::~Buffer() {
  if (data_ && !owner_) pool_of(stream_.device).free(data_, size_, stream_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stream_(other.stream_),
      owner_(std::move(other.owner_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(stream_, other.stream_);
  std::swap(owner_, other.owner_);
  return *this;
}

PoolStatistics pool_statistics(Device device) {
  return pool_of(device).statistics();
}

void release_cached_memory(Device device) {
  pool_of(device).release(device, nullptr);
}

void release_cached_memory(StreamView stream) {
  pool_of(stream.device).release(stream.device, &stream);
}

void retain_pool(StreamView stream) {
  pool_of(stream.device).retain(stream);
}

}  // namespace tandem
