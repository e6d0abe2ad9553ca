#include "tandem/train/device_choice.h"

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
  samples_per_second(state.engine(), state.task().batches, warm_up_ms);
  return samples_per_second(state.engine(), state.task().batches, measured_ms);
}

std::string millions(double rate) {
  return fmt::format("{:.{}f} M", rate / 1e6, rate >= 1e6 ? 1 : rate >= 1e4 ? 2 : 4);
}

}  // namespace

DeviceChoice choose_device(const TrainOptions& options, const ImageSet& images) {
  if (options.device != "auto") return {parse_device(options.device), "as asked for"};
  if (cuda_device_count() == 0) return {cpu_device, "no CUDA device: " + why_no_cuda()};
  std::vector<Device> devices{cpu_device};
  for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(cuda_device(i));
  std::vector<double> rates;
  for (const Device device : devices) rates.push_back(measure(options, images, device));
  const std::size_t best =
      static_cast<std::size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin());
  std::string reason = millions(rates[best]) + " samples/s";
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i != best)
      reason += fmt::format("{} {} would do {}", i == (best == 0 ? 1 : 0) ? ";" : ",", devices[i].to_string(),
                            millions(rates[i]));
  return {devices[best], reason};
}

}  // namespace tandem
