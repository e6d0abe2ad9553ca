// Which GPU a device is, and the versions of the libraries that compute on it: the bits of products and
// convolutions depend on them. CUDA only.
#pragma once

#include <string>

#include "tandem/device/device.h"

namespace tandem {

struct GpuIdentity {
  std::string name;           // "NVIDIA H200"
  std::string uuid;           // "GPU-…", different for every GPU of the world
  std::string cublas, cudnn;  // versions
};

GpuIdentity gpu_identity(Device device);
std::string gpu_uuid(Device device);

}  // namespace tandem
