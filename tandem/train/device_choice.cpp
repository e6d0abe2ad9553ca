#include "tandem/train/device_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/loader.h"
#include "tandem/text/format_number.h"
#include "tandem/train/model_snapshot.h"
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
  AugmentPlace augment_on;
  std::optional<int> workers;
  std::string name;
  double rate = 0;
};

// Worker counts worth measuring when the trainer runs on the same CPUs: one per CPU, or none.
std::vector<int> worker_counts(const FitOptions& options) {
  if (options.workers) return {*options.workers};
  std::vector<int> counts{default_worker_count()};
  if (counts.back() != 0) counts.push_back(0);
  return counts;
}

std::vector<Device> devices_for(const FitOptions& options) {
  if (options.device) {
    require_available(*options.device);
    return {*options.device};
  }
  std::vector<Device> devices{cpu_device};
  for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(cuda_device(i));
  return devices;
}

std::vector<Candidate> candidates_for(const FitOptions& options) {
  std::vector<Candidate> candidates;
  for (const Device device : devices_for(options)) {
    const std::string name = device.to_string();
    if (options.transform.resizes()) {
      const bool on_cpu = !device.is_cuda() || options.augment_on == AugmentPlace::cpu;
      candidates.push_back({device, on_cpu ? AugmentPlace::cpu : AugmentPlace::gpu, options.workers, name});
    } else if (options.transform.empty()) {
      candidates.push_back({device, options.augment_on, options.workers, name});
    } else if (!device.is_cuda()) {
      for (const int count : worker_counts(options))
        candidates.push_back({device, AugmentPlace::cpu, count,
                              count == 0 ? name + " augmenting between the steps"
                                         : fmt::format("{} with {} workers", name, count)});
    } else {
      for (const AugmentPlace place : {AugmentPlace::gpu, AugmentPlace::cpu})
        if (options.transform.cpu_only()
                ? place == AugmentPlace::cpu
                : options.augment_on == AugmentPlace::automatic || options.augment_on == place)
          candidates.push_back(
              {device, place, options.workers,
               fmt::format("{} augmenting on the {}", name, place == AugmentPlace::gpu ? "gpu" : "cpu")});
    }
  }
  return candidates;
}

double measure(FitOptions options, const TrainingImages& images, const ImageInput& input, Module& model,
               const Candidate& candidate) {
  options.augment_on = candidate.augment_on;
  options.workers = candidate.workers;
  // Processes prepare images as fast as threads, but take seconds to start, which is not their rate.
  options.worker_kind = WorkerKind::thread;
  options.epochs = std::max<std::int64_t>(options.epochs, 2);
  return training_rate(options, images, input, model, candidate.device);
}

}  // namespace

double training_rate(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                     Module& model, Device device) {
  TrainingState state(model, options, images, input, device);
  samples_per_second(state.engine(), state.task().batches(), warm_up_ms);
  return samples_per_second(state.engine(), state.task().batches(), measured_ms);
}

std::string format_rate(double rate) {
  if (!(rate > 0 && rate < 1e15)) return "–";
  if (rate < 100) return fmt::format("{:#.3g}", rate);
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
  return format_count(std::llround(std::round(rate / unit) * unit));
}

DeviceChoice choose_device(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                           Module& model) {
  std::vector<Candidate> candidates = candidates_for(options);
  if (candidates.size() == 1)
    return {candidates[0].device, candidates[0].augment_on, candidates[0].workers,
            options.device ? "as requested" : "no CUDA device: " + why_no_cuda()};
  const Candidate* best = nullptr;
  std::vector<std::string> others;
  ModelSnapshot snapshot(model);
  for (Candidate& candidate : candidates) {
    try {
      candidate.rate = measure(options, images, input, model, candidate);
      snapshot.restore();
      if (!best || candidate.rate > best->rate) best = &candidate;
    } catch (const Error& error) {  // a GPU with too little memory must not prevent training elsewhere
      snapshot.restore();
      others.push_back(fmt::format("{} cannot: {}", candidate.name, error.what()));
      if (candidates.size() == others.size()) throw;
    } catch (...) {
      snapshot.restore();
      throw;
    }
  }
  for (const Candidate& candidate : candidates)
    if (&candidate != best && candidate.rate > 0)
      others.push_back(fmt::format("{} would do {} samples/s", candidate.name, format_rate(candidate.rate)));
  return {best->device, best->augment_on, best->workers,
          fmt::format("{}{} samples/s; {}", best->name == best->device.to_string() ? "" : best->name + ", ",
                      format_rate(best->rate), fmt::join(others, ", "))};
}

DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images) {
  const std::unique_ptr<Module> scratch = new_model(options, images);
  return choose_device(options, images, input_of(options, images), *scratch);
}

}  // namespace tandem
