#include "tandem/device/gpu_monitor.h"

#include "tandem/core/error.h"
#include "tandem/core/shared_library.h"

namespace tandem {
namespace {

// As in nvml.h, whose interface is stable: a library of the driver, not of the CUDA toolkit.
using NvmlDevice = void*;
constexpr int nvml_success = 0;
struct NvmlUtilization {
  unsigned int gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};

}  // namespace

struct GpuMonitor::Nvml {
  SharedLibrary library;
  int (*shutdown)() = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlDevice device = nullptr;
  bool is_open = false;  // and must be closed

  explicit Nvml(const std::string& file) : library({.name = "NVML", .files = {file}, .folders = {}}) {}
  ~Nvml() {
    if (is_open) shutdown();
  }

  // Whether the GPU is there.
  bool open(const std::string& uuid) {
    shutdown = library.function<int (*)()>("nvmlShutdown");
    utilization = library.function<int (*)(NvmlDevice, NvmlUtilization*)>("nvmlDeviceGetUtilizationRates");
    memory = library.function<int (*)(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
    const auto find = library.function<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
    is_open = library.function<int (*)()>("nvmlInit_v2")() == nvml_success;
    return is_open && find(uuid.c_str(), &device) == nvml_success;
  }
};

GpuMonitor::GpuMonitor(const std::string& uuid, const std::string& library) {
  auto nvml = std::make_unique<Nvml>(library);
  try {
    if (nvml->open(uuid)) nvml_ = std::move(nvml);
  } catch (const Error&) {  // not installed, or another version
  }
}

GpuMonitor::~GpuMonitor() = default;

GpuUse GpuMonitor::use() const {
  GpuUse use;
  if (!nvml_) return use;
  NvmlUtilization rates{};
  if (nvml_->utilization(nvml_->device, &rates) == nvml_success) use.busy_share = rates.gpu / 100.0;
  NvmlMemory memory{};
  if (nvml_->memory(nvml_->device, &memory) == nvml_success)
    use.memory_mb = static_cast<double>(memory.used) / 1e6;
  return use;
}

}  // namespace tandem
