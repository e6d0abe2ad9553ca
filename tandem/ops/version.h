// Implementations of maximum, correlate and xxt, which the studies compare.
#pragma once

#include <string_view>

#include "tandem/device/device.h"

namespace tandem {

/// `reference` is the definition in plain scalar loops on one thread; `simd` uses SIMD on one thread,
/// `parallel` on all cores; `cuda_simple` is a textbook CUDA kernel; `cuda` is tuned.
enum class Version { reference, simd, parallel, cuda_simple, cuda };

/// Every version, in the order of the enum.
inline constexpr Version all_versions[] = {Version::reference, Version::simd, Version::parallel,
                                           Version::cuda_simple, Version::cuda};

/// "reference", "simd", "parallel", "cuda-simple" or "cuda".
constexpr std::string_view name_of(Version version) {
  constexpr std::string_view names[] = {"reference", "simd", "parallel", "cuda-simple", "cuda"};
  return names[static_cast<int>(version)];
}

/// The backend a version runs on.
constexpr Backend backend_of(Version version) {
  return version == Version::cuda_simple || version == Version::cuda ? Backend::cuda : Backend::cpu;
}

/// The version that operations use by default on `device`.
constexpr Version tuned_version(Device device) {
  return device.backend == Backend::cuda ? Version::cuda : Version::parallel;
}

/// The version with this name, e.g. "cuda-simple". Throws Error for an unknown name.
Version parse_version(std::string_view name);

}  // namespace tandem
