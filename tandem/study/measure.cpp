#include "tandem/study/measure.h"

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/device/stream.h"

namespace tandem {
namespace {

// Repeats `sample`, which returns milliseconds, as often as the time budget allows.
template <class F>
Timing repeat(const MeasureOptions& options, double one_ms, F&& sample) {
  const int count = repetitions_for(options, one_ms);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(sample());
  return timing_of(std::move(times));
}

double wall_ms(Device device, const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  current_stream(device).synchronize();
  return watch.elapsed_ms();
}

}  // namespace

std::vector<int> increasing(std::vector<int> counts) {
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<std::optional<int>> training_threads(Device device, const StudyOptions& options) {
  if (device.is_cuda() || options.threads.empty()) return {std::nullopt};
  const std::vector<int> counts = increasing(options.threads);
  return {counts.begin(), counts.end()};
}

Timing timing_of(std::vector<double> ms) {
  expect(!ms.empty());
  std::sort(ms.begin(), ms.end());
  const std::size_t middle = ms.size() / 2;
  const double median = ms.size() % 2 == 1 ? ms[middle] : (ms[middle - 1] + ms[middle]) / 2;
  return {.median_ms = median, .min_ms = ms.front(), .max_ms = ms.back()};
}

Timing scaled(const Timing& timing, double factor) {
  return {.median_ms = factor * timing.median_ms,
          .min_ms = factor * timing.min_ms,
          .max_ms = factor * timing.max_ms};
}

int repetitions_for(const MeasureOptions& options, double one_ms) {
  const double divisor = std::max(one_ms, 1e-6);
  const double min_count =
      std::clamp(options.max_ms / divisor, std::min(2.0, double(options.min_repetitions)),
                 double(options.min_repetitions));
  const double max_count = std::max(min_count, double(options.max_repetitions));
  return static_cast<int>(std::clamp(options.budget_ms / divisor, min_count, max_count));
}

Timing measure(Device device, const std::function<void(int)>& run, const MeasureOptions& options) {
  if (!device.is_cuda()) return measure_wall(device, run, options);
  int call = 0;
  for (int i = 0; i < 3; ++i) run(call++);
  current_stream(device).synchronize();
  const double one_ms = wall_ms(device, [&] { run(call++); });
  // A batch lasts at least two milliseconds, so that launches overlap with the preceding work.
  const int batch = static_cast<int>(std::clamp(2.0 / std::max(one_ms, 1e-3), 1.0, 200.0));
  Event start(device), stop(device);
  const StreamView stream = current_stream(device);
  return repeat(options, one_ms * batch, [&] {
    start.record(stream);
    for (int i = 0; i < batch; ++i) run(call++);
    stop.record(stream);
    stop.synchronize();
    return stop.elapsed_ms_since(start) / batch;
  });
}

Timing measure_wall(Device device, const std::function<void(int)>& run, const MeasureOptions& options) {
  int call = 0;
  double one_ms = wall_ms(device, [&] { run(call++); });
  if (one_ms < options.budget_ms)
    one_ms = wall_ms(device, [&] { run(call++); });  // the first call was the warm-up
  return repeat(options, one_ms, [&] { return wall_ms(device, [&] { run(call++); }); });
}

void set_times(StudyRow& row, const Timing& timing) {
  row.figures["median_ms"] = timing.median_ms;
  const bool repeated = timing.min_ms < timing.max_ms;  // a single time has no spread
  row.figures["min_ms"] = repeated ? std::optional(timing.min_ms) : std::nullopt;
  row.figures["max_ms"] = repeated ? std::optional(timing.max_ms) : std::nullopt;
}

}  // namespace tandem
