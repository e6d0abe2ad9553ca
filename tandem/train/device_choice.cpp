#include "tandem/train/device_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/train/training_state.h"

namespace tandem {
namespace {

// Workers start with a full ring: their sustained rate shows only after the ring has been used up.
constexpr double measured_ms = 200, warm_up_ms = 100;

// Repeats the steps of an epoch until `ms` have passed.
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

// One combination that can be chosen.
struct Candidate {
  Device device;
  std::string augment_on, workers;
  std::string name;
  double rate = 0;
};

// Worker counts worth measuring when the trainer runs on the same CPUs: one per CPU, or none.
std::vector<std::string> worker_counts(const TrainOptions& options) {
  if (options.workers != "auto") return {options.workers};
  std::vector<std::string> counts;
  for (const int count : {default_worker_count(), 0})
    if (counts.empty() || counts.back() != std::to_string(count)) counts.push_back(std::to_string(count));
  return counts;
}

std::vector<Candidate> candidates_for(const TrainOptions& options, bool photographs) {
  std::vector<Device> devices;
  if (options.device != "auto") {
    devices.push_back(parse_device(options.device));
  } else {
    devices.push_back(cpu_device);
    for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(cuda_device(i));
  }
  std::vector<Candidate> candidates;
  for (const Device device : devices) {
    const std::string name = device.to_string();
    if (photographs) {
      const bool on_cpu = !device.is_cuda() || options.augment_on == "cpu";
      candidates.push_back({device, on_cpu ? "cpu" : "gpu", options.workers, name});
    } else if (options.augment == "none") {
      candidates.push_back({device, options.augment_on, options.workers, name});
    } else if (!device.is_cuda()) {
      for (const std::string& count : worker_counts(options))
        candidates.push_back({device, "cpu", count,
                              count == "0" ? name + " augmenting between the steps"
                                           : fmt::format("{} with {} workers", name, count)});
    } else {
      for (const char* const where : {"gpu", "cpu"})
        if (options.augment_on == "auto" || options.augment_on == where)
          candidates.push_back(
              {device, where, options.workers, fmt::format("{} augmenting on the {}", name, where)});
    }
  }
  return candidates;
}

double measure(TrainOptions options, const TrainingImages& images, const Candidate& candidate) {
  options.augment_on = candidate.augment_on;
  options.workers = candidate.workers;
  options.epochs = std::max<std::int64_t>(options.epochs, 2);
  TrainingState state(options, images, candidate.device);
  samples_per_second(state.engine(), state.task().batches(), warm_up_ms);
  return samples_per_second(state.engine(), state.task().batches(), measured_ms);
}

std::string format_rate(double rate) {
  if (rate < 1e4) return fmt::format("{:.{}f}", rate, rate < 100 ? 1 : 0);
  return fmt::format("{:.{}f} M", rate / 1e6, rate >= 1e6 ? 1 : 2);
}

}  // namespace

DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images) {
  std::vector<Candidate> candidates = candidates_for(options, images.photos != nullptr);
  if (candidates.size() == 1)
    return {candidates[0].device, candidates[0].augment_on, candidates[0].workers,
            options.device == "auto" ? "no CUDA device: " + why_no_cuda() : "as requested"};
  const Candidate* best = nullptr;
  std::vector<std::string> others;
  for (Candidate& candidate : candidates) {
    try {
      candidate.rate = measure(options, images, candidate);
      if (!best || candidate.rate > best->rate) best = &candidate;
    } catch (const Error& error) {  // a GPU with too little memory must not prevent training elsewhere
      others.push_back(fmt::format("{} cannot: {}", candidate.name, error.what()));
      if (candidates.size() == others.size()) throw;
    }
  }
  for (const Candidate& candidate : candidates)
    if (&candidate != best && candidate.rate > 0)
      others.push_back(fmt::format("{} would do {}", candidate.name, format_rate(candidate.rate)));
  return {best->device, best->augment_on, best->workers,
          fmt::format("{}{} samples/s; {}", best->name == best->device.to_string() ? "" : best->name + ", ",
                      format_rate(best->rate), fmt::join(others, ", "))};
}

}  // namespace tandem
