#include <cublas_v2.h>
#include <cudnn.h>
#include <fmt/format.h>

#include <iterator>

#include "tandem/device/cuda.h"
#include "tandem/device/gpu_identity.h"

namespace tandem {
namespace {

// As nvidia-smi -L writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string cublas_version() {
  int parts[3] = {};
  constexpr libraryPropertyType properties[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (int i = 0; i < 3; ++i) cublas_check(cublasGetProperty(properties[i], &parts[i]), "cublasGetProperty");
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

}  // namespace

std::string gpu_uuid(Device device) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return uuid_text(properties.uuid);
}

GpuIdentity gpu_identity(Device device) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  const std::size_t cudnn = cudnnGetVersion();  // 9.12.0 is 91200
  return {.name = properties.name,
          .uuid = uuid_text(properties.uuid),
          .cublas = cublas_version(),
          .cudnn = fmt::format("{}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100)};
}

}  // namespace tandem
