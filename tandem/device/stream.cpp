#include "tandem/device/stream.h"

#include <deque>
#include <mutex>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

thread_local StreamScope* innermost_scope = nullptr;

// The default stream of a device, created at its first use and never destroyed.
StreamView default_stream(Device device) {
  static std::mutex mutex;
  static auto& streams = *new std::deque<StreamView>;
  std::lock_guard lock(mutex);
  for (const StreamView& stream : streams)
    if (stream.device == device) return stream;
  void* handle = on_backend(device, "stream", [&]<Backend B>() { return create_stream<B>(device); });
  return streams.emplace_back(StreamView{device, handle});
}

}  // namespace

void StreamView::synchronize() const {
  on_backend(device, "synchronize", [&]<Backend B>() { synchronize_stream<B>(*this); });
}

Stream::Stream(Device device) : view_{device} {
  require_available(device);
  view_.handle = on_backend(device, "stream", [&]<Backend B>() { return create_stream<B>(device); });
}

Stream::~Stream() {
  if (!view_.handle) return;
  release_cached_memory(view_);
  on_backend(view_.device, "stream", [&]<Backend B>() { destroy_stream<B>(view_.device, view_.handle); });
}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(view_, other.view_);
  return *this;
}

StreamView current_stream(Device device) {
  if (!device.is_cuda()) return {};
  for (const StreamScope* scope = innermost_scope; scope; scope = scope->outer_)
    if (scope->stream_.device == device) return scope->stream_;
  return default_stream(device);
}

StreamScope::StreamScope(StreamView stream) : outer_(innermost_scope), stream_(stream) {
  innermost_scope = this;
}

StreamScope::~StreamScope() {
  innermost_scope = outer_;
}

Event::Event(Device device) : device_(device) {
  handle_ = on_backend(device, "event", [&]<Backend B>() { return create_event<B>(device); });
}

Event::~Event() {
  if (handle_) on_backend(device_, "event", [&]<Backend B>() { destroy_event<B>(device_, handle_); });
}

void Event::record(StreamView stream) {
  expect(stream.device == device_);
  on_backend(device_, "event", [&]<Backend B>() { record_event<B>(handle_, stream); });
}

void Event::synchronize() const {
  on_backend(device_, "event", [&]<Backend B>() { synchronize_event<B>(handle_); });
}

void Event::block_stream(StreamView stream) const {
  on_backend(device_, "event", [&]<Backend B>() { wait_for_event<B>(stream, handle_); });
}

double Event::elapsed_ms_since(const Event& start) const {
  return on_backend(device_, "event",
                    [&]<Backend B>() { return elapsed_ms_between<B>(start.handle_, handle_); });
}

}  // namespace tandem
