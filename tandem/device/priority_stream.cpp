#include "tandem/device/priority_stream.h"

#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {

template <>
void* create_priority_stream<Backend::cpu>(Device device) {
  return create_stream<Backend::cpu>(device);
}

PriorityStream::PriorityStream(Device device) : view_{device} {
  require_available(device);
  view_.handle = on_backend(device, "stream", [&]<Backend B>() { return create_priority_stream<B>(device); });
}

PriorityStream::~PriorityStream() {
  if (!view_.handle) return;
  release_cached_memory(view_);
  on_backend(view_.device, "stream", [&]<Backend B>() { destroy_stream<B>(view_.device, view_.handle); });
}

}  // namespace tandem
