// The primitives a backend must implement: raw memory, copies, streams and events. Other code uses Buffer,
// Stream and Event, which are built on them. driver.cpp implements the CPU, driver_cuda.cpp CUDA.
#pragma once

#include <cstddef>
#include <string>

#include "tandem/device/device.h"

namespace tandem {

struct CudaFacts;
struct StreamView;

struct DriverState {
  int device_count = 0;
  std::string problem;  // why device_count is 0
};

template <Backend B>
const DriverState& probe_driver();

template <Backend B>
CudaFacts backend_facts();

// Memory from the system, without a pool; nullptr when there is not enough.
template <Backend B>
void* system_allocate(Device device, std::size_t bytes);
template <Backend B>
void system_free(Device device, void* memory, std::size_t bytes) noexcept;
template <Backend B>
std::size_t available_memory(Device device);

// Copies in stream order; either side may be host memory. After a copy to the host, synchronize the stream
// before reading.
template <Backend B>
void copy_bytes(void* to, const void* from, std::size_t bytes, StreamView stream);

// Page-locks host memory, so that copies from it are asynchronous and need no staging buffer.
template <Backend B>
void pin_memory(void* memory, std::size_t bytes);
template <Backend B>
void unpin_memory(void* memory) noexcept;

// Memory of system_allocate() for another process: 64 bytes that describe it, and its address there.
template <Backend B>
void export_memory(void* memory, std::byte* handle);
template <Backend B>
void* open_memory(const std::byte* handle);
template <Backend B>
void close_memory(void* memory) noexcept;

template <Backend B>
void* create_stream(Device device);
template <Backend B>
void destroy_stream(Device device, void* stream) noexcept;
template <Backend B>
void synchronize_stream(StreamView stream);

template <Backend B>
void* create_event(Device device);
template <Backend B>
void destroy_event(Device device, void* event) noexcept;
template <Backend B>
void record_event(void* event, StreamView stream);
template <Backend B>
void synchronize_event(void* event);
template <Backend B>
void wait_for_event(StreamView stream, void* event);
template <Backend B>
double elapsed_ms_between(void* start, void* stop);

}  // namespace tandem
