// Copies what a test wants to see from a device.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/stream.h"

namespace tandem {

template <class T>
std::vector<T> to_host(const T* from, std::int64_t count, Device device) {
  std::vector<T> values(static_cast<std::size_t>(count));
  on_backend(device, "test", [&]<Backend B>() {
    copy_bytes<B>(values.data(), from, values.size() * sizeof(T), current_stream(device));
  });
  current_stream(device).synchronize();
  return values;
}

}  // namespace tandem
