// The few things a backend must offer for memory and streams to be built on it: raw memory, copies, streams,
// events. Everything above goes through Buffer, Stream and Event. CUDA's part is driver_cuda.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "tandem/device/device.h"

namespace tandem {

struct StreamView;

struct DriverState {
  int device_count = 0;
  std::string problem;  // why there is none
};

template <Backend B>
const DriverState& probe_driver();

// Memory straight from the system; nullptr when there is not enough.
template <Backend B>
void* system_allocate(Device device, std::size_t bytes);
template <Backend B>
void system_free(Device device, void* memory, std::size_t bytes) noexcept;
template <Backend B>
std::size_t available_memory(Device device);

// Ordered on the stream; host memory may be on either side. The host side of a copy from the device holds its
// bytes only after the stream was synchronised.
template <Backend B>
void copy_bytes(void* to, const void* from, std::size_t bytes, StreamView stream);

// Keeps host memory where it is, so that copies from it need no detour.
template <Backend B>
void pin_memory(void* memory, std::size_t bytes);
template <Backend B>
void unpin_memory(void* memory) noexcept;

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
