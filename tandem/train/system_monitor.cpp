#include "tandem/train/system_monitor.h"

#include <unistd.h>

#include <algorithm>

#include "tandem/core/host_memory.h"
#include "tandem/device/buffer.h"
#include "tandem/device/gpu_identity.h"
#include "tandem/device/on_backend.h"
#include "tandem/process/process_tree.h"

namespace tandem {

SystemMonitor::SystemMonitor(Device device) : device_(device), cpu_seconds_(tree_cpu_seconds(::getpid())) {
  if constexpr (has_cuda)
    if (device.is_cuda()) gpu_.emplace(gpu_uuid(device));
}

void SystemMonitor::measure(StepRecord& record) {
  record.memory_mb = static_cast<double>(resident_bytes()) / 1e6;
  constexpr double min_seconds = 0.25;
  if (const double seconds = watch_.elapsed_ms() / 1000; seconds >= min_seconds) {
    const std::optional<double> now = tree_cpu_seconds(::getpid());
    cpu_cores_ = now && cpu_seconds_ ? std::max(*now - *cpu_seconds_, 0.0) / seconds : not_measured;
    watch_ = {};
    cpu_seconds_ = now;
  }
  record.cpu_cores = cpu_cores_;
  if (!device_.is_cuda()) return;
  const PoolStatistics pool = pool_statistics(device_);
  record.device_memory_mb = static_cast<double>(pool.bytes_in_use + pool.bytes_cached) / 1e6;
  if (!gpu_) return;
  const GpuUse use = gpu_->use();
  record.gpu_share = use.busy_share.value_or(not_measured);
  record.gpu_memory_mb = use.memory_mb.value_or(not_measured);
}

}  // namespace tandem
