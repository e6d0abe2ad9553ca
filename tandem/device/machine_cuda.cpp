#include <fmt/format.h>

#include "tandem/device/cuda.h"
#include "tandem/device/driver.h"
#include "tandem/device/machine.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

std::string version_text(int version) {
  return version > 0 ? fmt::format("{}.{}", version / 1000, version % 1000 / 10) : "";
}

}  // namespace

template <>
CudaFacts backend_facts<Backend::cuda>() {
  CudaFacts facts;
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess) facts.driver = version_text(driver);
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) facts.runtime = version_text(runtime);
  for (int index = 0; index < cuda_device_count(); ++index) {
    cudaDeviceProp properties{};
    cuda_check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    activate<Backend::cuda>(cuda_device(index));
    std::size_t available = 0, total = 0;
    cuda_check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    facts.devices.push_back({.index = index,
                             .name = properties.name,
                             .capability_major = properties.major,
                             .capability_minor = properties.minor,
                             .multiprocessors = properties.multiProcessorCount,
                             .memory_bytes = static_cast<std::int64_t>(total),
                             .free_bytes = static_cast<std::int64_t>(available)});
  }
  return facts;
}

}  // namespace tandem
