// What a run takes of its machine: memory and CPU time of its processes, and the use of its GPU.
#pragma once

#include <optional>

#include "tandem/core/clock.h"
#include "tandem/device/device.h"
#include "tandem/device/gpu_monitor.h"
#include "tandem/report/step_record.h"

namespace tandem {

class SystemMonitor {
 public:
  explicit SystemMonitor(Device device);

  // Sets the figures of the machine. The CPU's are of the time since the last call; they are not measured
  // again after less than a quarter of a second, because the kernel counts in hundredths.
  void measure(StepRecord& record);

 private:
  Device device_;
  std::optional<GpuMonitor> gpu_;
  Stopwatch watch_;
  std::optional<double> cpu_seconds_;  // when the watch was started
  double cpu_cores_ = not_measured;    // until then
};

}  // namespace tandem
