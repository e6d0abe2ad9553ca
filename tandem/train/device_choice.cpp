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

// Workers begin with a full ring: what they can keep up shows when that has been used.
constexpr double measured_ms = 200, warm_up_ms = 100;

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

// What can be chosen.
struct Place {
  Device device;
  std::string augment_on, workers;
  std::string name;
  double rate = 0;
};

// Numbers of workers worth trying beside a trainer on the same CPUs: one for each CPU, or none.
std::vector<std::string> worker_counts(const TrainOptions& options) {
  if (options.workers != "auto") return {options.workers};
  std::vector<std::string> counts;
  for (const int count : {default_worker_count(), 0})
    if (counts.empty() || counts.back() != std::to_string(count)) counts.push_back(std::to_string(count));
  return counts;
}

std::vector<Place> places_for(const TrainOptions& options, bool photographs) {
  std::vector<Device> devices;
  if (options.device != "auto") {
    devices.push_back(parse_device(options.device));
  } else {
    devices.push_back(cpu_device);
    for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(cuda_device(i));
  }
  std::vector<Place> places;
  for (const Device device : devices) {
    const std::string name = device.to_string();
    if (photographs) {
      const bool here = !device.is_cuda() || options.augment_on == "cpu";
      places.push_back({device, here ? "cpu" : "gpu", options.workers, name});
    } else if (options.augment == "none") {
      places.push_back({device, options.augment_on, options.workers, name});
    } else if (!device.is_cuda()) {
      for (const std::string& count : worker_counts(options))
        places.push_back({device, "cpu", count,
                          count == "0" ? name + " augmenting between the steps"
                                       : fmt::format("{} with {} workers", name, count)});
    } else {
      for (const char* const where : {"gpu", "cpu"})
        if (options.augment_on == "auto" || options.augment_on == where)
          places.push_back(
              {device, where, options.workers, fmt::format("{} augmenting on the {}", name, where)});
    }
  }
  return places;
}

double measure(TrainOptions options, const TrainingImages& images, const Place& place) {
  options.augment_on = place.augment_on;
  options.workers = place.workers;
  options.epochs = std::max<std::int64_t>(options.epochs, 2);
  TrainingState state(options, images, place.device);
  samples_per_second(state.engine(), state.task().batches(), warm_up_ms);
  return samples_per_second(state.engine(), state.task().batches(), measured_ms);
}

std::string in_words(double rate) {
  if (rate < 1e4) return fmt::format("{:.{}f}", rate, rate < 100 ? 1 : 0);
  return fmt::format("{:.{}f} M", rate / 1e6, rate >= 1e6 ? 1 : 2);
}

}  // namespace

DeviceChoice choose_device(const TrainOptions& options, const TrainingImages& images) {
  std::vector<Place> places = places_for(options, images.photos != nullptr);
  if (places.size() == 1)
    return {places[0].device, places[0].augment_on, places[0].workers,
            options.device == "auto" ? "no CUDA device: " + why_no_cuda() : "as asked for"};
  const Place* best = nullptr;
  std::vector<std::string> others;
  for (Place& place : places) {
    try {
      place.rate = measure(options, images, place);
      if (!best || place.rate > best->rate) best = &place;
    } catch (const Error& error) {  // a GPU without room for it is no reason not to train
      others.push_back(fmt::format("{} cannot: {}", place.name, error.what()));
      if (places.size() == others.size()) throw;
    }
  }
  for (const Place& place : places)
    if (&place != best && place.rate > 0)
      others.push_back(fmt::format("{} would do {}", place.name, in_words(place.rate)));
  return {best->device, best->augment_on, best->workers,
          fmt::format("{}{} samples/s; {}", best->name == best->device.to_string() ? "" : best->name + ", ",
                      in_words(best->rate), fmt::join(others, ", "))};
}

}  // namespace tandem
