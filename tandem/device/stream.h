// Streams and events: owners (Stream, Event) and the view that kernels take as their last argument
// (StreamView). On the CPU a stream is nothing and an event is a time stamp, so the same code measures both.
#pragma once

#include "tandem/device/device.h"

namespace tandem {

struct StreamView {
  Device device;
  void* handle = nullptr;

  void synchronize() const;  // waits for this stream alone, never for the whole device
  friend bool operator==(const StreamView&, const StreamView&) = default;
};

class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(Stream&& other) noexcept : view_(other.view_) { other.view_ = {}; }
  Stream& operator=(Stream&& other) noexcept;

  StreamView view() const { return view_; }
  operator StreamView() const { return view_; }

 private:
  StreamView view_;
};

// The stream this thread's operations on `device` go to: the innermost StreamScope's, else the device's own.
StreamView current_stream(Device device);

// While it lives, operations this thread starts on the stream's device are ordered on it.
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

class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept : device_(other.device_), handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&&) = delete;

  void record(StreamView stream);
  void synchronize() const;
  // Work put on `stream` from now on starts after this event; the host does not wait.
  void hold_back(StreamView stream) const;
  // Milliseconds from `start` to this event; both must have been reached.
  double elapsed_ms_since(const Event& start) const;

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace tandem
