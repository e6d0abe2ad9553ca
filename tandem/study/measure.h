// Timing: warm-up, repetitions, median and spread. GPU work is timed with events around several launches in a
// row, which measures device time and not launch overhead.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/device/device.h"
#include "tandem/report/study_row.h"
#include "tandem/study/options.h"

namespace tandem {

// Sets the number of threads for its lifetime.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int count) : previous_(thread_count()) { set_thread_count(count); }
  ~ThreadCountScope() { set_thread_count(previous_); }
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int previous_;
};

// Without repetitions, in increasing order.
std::vector<int> increasing(std::vector<int> counts);

// The thread counts of training on a device: on the CPU those of a sweep in increasing order; otherwise one
// that is not set.
std::vector<std::optional<int>> training_threads(Device device, const StudyOptions& options);

struct Timing {
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
};

// The median of an even number of times is the mean of the two in the middle. Needs at least one time.
Timing timing_of(std::vector<double> ms);

Timing scaled(const Timing& timing, double factor);

// The time of a wrong result is meaningless.
inline constexpr double no_time = std::numeric_limits<double>::quiet_NaN();
inline constexpr Timing not_timed{.median_ms = no_time, .min_ms = no_time, .max_ms = no_time};

void set_times(StudyRow& row, const Timing& timing);

struct MeasureOptions {
  double budget_ms = 500;  // approximate total time of all repetitions
  int min_repetitions = 5;
  int max_repetitions = 50;
  double max_ms = 5000;  // above this, fewer than min_repetitions are made, but at least 2
};

// On a GPU, repetitions with large inputs rotate through several copies, so that its cache does not hold
// them.
inline int rotated_sets(std::int64_t bytes) {
  constexpr std::int64_t rotate_from_bytes = 16 << 20;
  return bytes >= rotate_from_bytes ? 3 : 1;
}

// How often to repeat what takes `one_ms`.
int repetitions_for(const MeasureOptions& options, double one_ms);

// `run(i)` does the work once; i counts the calls so that it can alternate between inputs.
Timing measure(Device device, const std::function<void(int)>& run, const MeasureOptions& options = {});

// Wall-clock time of the whole call, including device work.
Timing measure_wall(Device device, const std::function<void(int)>& run, const MeasureOptions& options = {});

}  // namespace tandem
