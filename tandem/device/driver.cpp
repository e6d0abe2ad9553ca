// The CPU backend. Work is complete when the call returns, so streams are empty and an event is a time stamp.
#include "tandem/device/driver.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/parallel.h"
#include "tandem/device/stream.h"

namespace tandem {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

struct CpuEvent {
  std::chrono::steady_clock::time_point time;
};

}  // namespace

template <>
std::size_t available_memory<Backend::cpu>(Device) {
  return static_cast<std::size_t>(available_host_bytes());
}

template <>
void* system_allocate<Backend::cpu>(Device, std::size_t bytes) {
  // Large blocks use huge pages: fewer page faults and TLB misses.
  const bool large = bytes >= 2 * huge_page;
  if (large && bytes > available_memory<Backend::cpu>({})) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? huge_page : 64, bytes) != 0) return nullptr;
  if (large) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

template <>
void system_free<Backend::cpu>(Device, void* memory, std::size_t) noexcept {
  std::free(memory);
}

template <>
void copy_bytes<Backend::cpu>(void* to, const void* from, std::size_t bytes, StreamView) {
  constexpr std::int64_t grain = 1 << 20;
  parallel_for(static_cast<std::int64_t>(bytes), grain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
  });
}

template <>
void pin_memory<Backend::cpu>(void*, std::size_t) {}

template <>
void unpin_memory<Backend::cpu>(void*) noexcept {}

// SharedBuffer is for GPUs only.
template <>
void export_memory<Backend::cpu>(void*, std::byte*) {
  expect(false);
}

template <>
void* open_memory<Backend::cpu>(const std::byte*) {
  expect(false);
  return nullptr;
}

template <>
void close_memory<Backend::cpu>(void*) noexcept {}

template <>
void* create_stream<Backend::cpu>(Device) {
  return nullptr;
}
template <>
void destroy_stream<Backend::cpu>(Device, void*) noexcept {}
template <>
void synchronize_stream<Backend::cpu>(StreamView) {}

template <>
void* create_event<Backend::cpu>(Device) {
  return new CpuEvent;
}
template <>
void destroy_event<Backend::cpu>(Device, void* event) noexcept {
  delete static_cast<CpuEvent*>(event);
}
template <>
void record_event<Backend::cpu>(void* event, StreamView) {
  static_cast<CpuEvent*>(event)->time = std::chrono::steady_clock::now();
}
template <>
void synchronize_event<Backend::cpu>(void*) {}
template <>
void wait_for_event<Backend::cpu>(StreamView, void*) {}
template <>
double elapsed_ms_between<Backend::cpu>(void* start, void* stop) {
  const auto span = static_cast<CpuEvent*>(stop)->time - static_cast<CpuEvent*>(start)->time;
  return std::chrono::duration<double, std::milli>(span).count();
}

}  // namespace tandem
