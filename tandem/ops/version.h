// The versions the three computations of the studies exist in. `reference` is the definition, in plain loops
// on one thread; `parallel` uses SIMD and all cores; `cuda-simple` has the launch shape of a first CUDA
// lesson; `cuda` is tuned.
#pragma once

#include <string_view>

#include "tandem/device/device.h"

namespace tandem {

enum class Version { reference, parallel, cuda_simple, cuda };

inline constexpr Version all_versions[] = {Version::reference, Version::parallel, Version::cuda_simple,
                                           Version::cuda};

constexpr std::string_view name_of(Version version) {
  constexpr std::string_view names[] = {"reference", "parallel", "cuda-simple", "cuda"};
  return names[static_cast<int>(version)];
}

constexpr Backend backend_of(Version version) {
  return version == Version::reference || version == Version::parallel ? Backend::cpu : Backend::cuda;
}

// The one an ordinary tensor operation uses.
constexpr Version tuned_version(Device device) {
  return device.backend == Backend::cuda ? Version::cuda : Version::parallel;
}

// "cuda-simple" → Version::cuda_simple; throws Error for anything else.
Version parse_version(std::string_view name);

// Error unless `version` runs on `device`.
void check_version(const char* op, Version version, Device device);

// Calls f.operator()<V>(); as in on_backend(), the CUDA versions exist only in a CUDA build.
template <class F>
void on_version(Version version, Device device, const char* op, F&& f) {
  check_version(op, version, device);
  on_backend(device, op, [&]<Backend B>() {
    if constexpr (B == Backend::cpu)
      version == Version::reference ? f.template operator()<Version::reference>()
                                    : f.template operator()<Version::parallel>();
    else
      version == Version::cuda_simple ? f.template operator()<Version::cuda_simple>()
                                      : f.template operator()<Version::cuda>();
  });
}

}  // namespace tandem
