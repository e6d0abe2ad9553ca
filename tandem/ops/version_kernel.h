// Dispatch to the implementation a Version names.
#pragma once

#include <optional>

#include "tandem/core/parallel.h"
#include "tandem/device/device.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/version.h"

namespace tandem::detail {

// Throws Error unless `version` runs on `device`.
void check_version(const char* op, Version version, Device device);

// Calls f.operator()<V>(), for `simd` the kernel of `parallel` on one thread. As with on_backend(), the CUDA
// versions are instantiated only in a CUDA build.
template <class F>
void on_version(Version version, Device device, const char* op, F&& f) {
  check_version(op, version, device);
  on_backend(device, op, [&]<Backend B>() {
    if constexpr (B == Backend::cpu) {
      if (version == Version::reference) return f.template operator()<Version::reference>();
      std::optional<ThreadLimit> one_thread;
      if (version == Version::simd) one_thread.emplace(1);
      f.template operator()<Version::parallel>();
    } else {
      version == Version::cuda_simple ? f.template operator()<Version::cuda_simple>()
                                      : f.template operator()<Version::cuda>();
    }
  });
}

}  // namespace tandem::detail
