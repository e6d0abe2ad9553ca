// How busy a GPU is and how much of its memory is taken, by all processes: from NVML, which comes with
// NVIDIA's driver and is opened at run time.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tandem {

// A figure that this GPU or driver does not tell is empty.
struct GpuUse {
  std::optional<double> busy_share;  // of the last part of a second in which a kernel ran
  std::optional<double> memory_mb;
};

class GpuMonitor {
 public:
  // `uuid` names the GPU as nvidia-smi does: "GPU-…". Without the library, or such a GPU in it, nothing is
  // told. `library` is for tests.
  explicit GpuMonitor(const std::string& uuid, const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  GpuUse use() const;

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;  // null: nothing is told
};

}  // namespace tandem
