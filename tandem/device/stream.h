// CUDA streams and events. On the CPU, where work is complete when the call returns, a stream is empty and an
// event is a time stamp, so the same code works on both.
#pragma once

#include "tandem/device/device.h"

namespace tandem {

/// A non-owning reference to a stream. Functions that launch work take it as their last argument.
struct StreamView {
  Device device;
  void* handle = nullptr;

  /// Blocks the host until the work on this stream is complete. Other streams of the device are not waited
  /// for.
  void synchronize() const;
  friend bool operator==(const StreamView&, const StreamView&) = default;
};

/// Owns a stream. Its destructor waits for the stream and releases the memory pooled for it.
class Stream {
 public:
  /// Throws Error when the device is not available.
  explicit Stream(Device device);
  ~Stream();
  Stream(Stream&& other) noexcept : view_(other.view_) { other.view_ = {}; }
  Stream& operator=(Stream&& other) noexcept;

  StreamView view() const { return view_; }
  operator StreamView() const { return view_; }

 private:
  StreamView view_;
};

/// The stream on which this thread's operations on `device` run: that of the innermost StreamScope, otherwise
/// the device's default stream, which all threads share.
StreamView current_stream(Device device);

/// While it exists, operations that this thread starts on the stream's device run on the stream. Scopes nest
/// and must be destroyed in reverse order.
class StreamScope {
 public:
  explicit StreamScope(StreamView stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  StreamScope* outer_;
  StreamView stream_;
  friend StreamView current_stream(Device);
};

/// A point in the work of a stream: a CUDA event, or a time stamp on the CPU.
class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept : device_(other.device_), handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&&) = delete;

  /// Records the event after the work that is on `stream` now.
  void record(StreamView stream);
  /// Blocks the host until the event is reached.
  void synchronize() const;
  /// Makes later work on `stream` wait for this event. Does not block the host.
  void block_stream(StreamView stream) const;
  /// Milliseconds from `start` to this event. Both must have been reached.
  double elapsed_ms_since(const Event& start) const;

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace tandem
