// Timing: warm-up, repetitions, median and spread. Work on a GPU is timed by events around several launches
// in a row, so that what is measured is the device's time and not the cost of one launch.
#pragma once

#include <functional>

#include "tandem/core/parallel.h"
#include "tandem/device/device.h"

namespace tandem {

// Sets the number of threads for as long as it lives.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : previous_(thread_count()) { set_thread_count(count); }
  ~ThreadCount() { set_thread_count(previous_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int previous_;
};

struct Timing {
  double median_ms = 0, min_ms = 0, max_ms = 0;
};

struct MeasureOptions {
  double budget_ms = 500;  // about how long all repetitions together may take
  int least = 5, most = 50;
};

// `run(i)` does the work once; i counts, so that it can alternate between inputs.
Timing measure(Device device, const std::function<void(int)>& run, const MeasureOptions& options = {});

// Wall-clock time of the whole call, the device's work included.
Timing measure_wall(Device device, const std::function<void(int)>& run, const MeasureOptions& options = {});

}  // namespace tandem
