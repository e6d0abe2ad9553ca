#include "tandem/train/device_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/train/training_state.h"

namespace tandem {
namespace {

constexpr double measured_ms = 200, warm_up_ms = 50;

// Steps from the epoch's beginning, again and again, until `ms` have passed.
double samples_per_second(Engine& engine, const BatchPlan& batches, double ms) {
  const Stopwatch watch;
  double samples = 0;
  std::int64_t count = 1, first = 0;
  do {
    if (first == batches.steps()) first = 0;
    const std::int64_t now = std::min(count, batches.steps() - first);
    samples += static_cast<double>(engine.run(0, first, now).samples);
    first += now;
    if (watch.elapsed_ms() < ms / 4) count = std::min(2 * count, batches.steps());
  } while (watch.elapsed_ms() < ms);
  return samples / watch.elapsed_ms() * 1000;
}

double measure(const TrainOptions& options, const ImageSet& images, Device device) {
  TrainingState state(options, images, device);
  samples_per_second(state.engine(), state.task().batches(), warm_up_ms);
  return samples_per_second(state.engine(), state.task().batches(), measured_ms);
}

std::string millions(double rate) {
  return fmt::format("{:.{}f} M", rate / 1e6, rate >= 1e6 ? 1 : rate >= 1e4 ? 2 : 4);
}

}  // namespace

DeviceChoice choose_device(const TrainOptions& options, const ImageSet& images) {
  if (options.device != "auto") return {parse_device(options.device), "as asked for"};
  if (cuda_device_count() == 0) return {cpu_device, "no CUDA device: " + why_no_cuda()};
  DeviceChoice choice{cpu_device, ""};
  double best = measure(options, images, cpu_device);
  std::vector<std::string> others;
  for (int i = 0; i < cuda_device_count(); ++i) {
    const Device device = cuda_device(i);
    try {
      const double rate = measure(options, images, device);
      const bool faster = rate > best;
      others.push_back(fmt::format("{} would do {}", (faster ? choice.device : device).to_string(),
                                   millions(faster ? best : rate)));
      if (faster) choice.device = device;
      best = std::max(best, rate);
    } catch (const Error& error) {  // a GPU without room for it is no reason not to train
      others.push_back(fmt::format("{} cannot: {}", device.to_string(), error.what()));
    }
  }
  choice.reason = fmt::format("{} samples/s; {}", millions(best), fmt::join(others, ", "));
  return choice;
}

}  // namespace tandem
