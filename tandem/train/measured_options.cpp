#include "tandem/train/measured_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/train/device_choice.h"
#include "tandem/train/fit_head.h"
#include "tandem/train/model_snapshot.h"
#include "tandem/train/training_state.h"

namespace tandem {
namespace {

// Options for steps that only measure.
FitOptions measuring(FitOptions options) {
  options.worker_kind = WorkerKind::thread;  // processes take seconds to start
  options.warmup_steps = 0;
  options.warmup_epochs = 0;
  options.ema = 0;
  options.lookahead = 0;
  options.unfreeze_at = 0;
  return options;
}

// Rounded: more digits would promise what a range test cannot know.
double two_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

}  // namespace

double choose_learning_rate(const std::vector<double>& rates, const std::vector<double>& losses) {
  expect(!losses.empty() && rates.size() == losses.size());
  const auto lowest = std::ranges::min_element(losses) - losses.begin();
  return two_digits(rates[static_cast<std::size_t>(lowest)] / 6);
}

RangeTest find_learning_rate(const FitOptions& options, const TrainingImages& images, const ImageInput& input,
                             Module& model) {
  constexpr double lowest = 1e-6, highest = 10, smoothing = 0.8, divergence = 4;
  constexpr std::int64_t rates = 60, min_steps = 5, max_steps = 10;
  const std::int64_t epoch = images.count() / options.batch_size;
  const std::int64_t steps_per_rate = std::clamp(epoch / rates, min_steps, max_steps);
  FitOptions probe = measuring(options);
  probe.learning_rate = lowest;
  probe.schedule = ScheduleKind::step;  // one rate per "epoch" of a few random batches
  probe.step_size = 1;
  probe.gamma = std::pow(highest / lowest, 1.0 / (rates - 1));
  probe.epochs = rates;
  probe.shuffle = true;
  probe.batches_per_epoch = steps_per_rate;
  ModelSnapshot snapshot(model);
  RangeTest test;
  try {
    if (auto* const backbone = dynamic_cast<BackboneModel*>(&model); backbone && options.fit_head) {
      model.to(*options.device);
      fit_head(*backbone, materialize(*images.dataset, options.evaluation_transform()), input);
    }
    TrainingState state(model, probe, images, input, *options.device);
    double mean = 0, best = INFINITY;
    for (std::int64_t i = 0; i < rates; ++i) {
      const StepSums sums = state.engine().run(i, 0, steps_per_rate);
      mean = smoothing * mean + (1 - smoothing) * sums.loss / static_cast<double>(sums.samples);
      const double loss = mean / (1 - std::pow(smoothing, static_cast<double>(i + 1)));
      if (!std::isfinite(loss)) break;
      const double rate = lowest * std::pow(probe.gamma, static_cast<double>(i));
      test.rates.push_back(rate);
      test.losses.push_back(loss);
      best = std::min(best, loss);
      if (loss > divergence * best) break;
    }
  } catch (...) {
    snapshot.restore();
    throw;
  }
  snapshot.restore();
  check(!test.rates.empty(), "[train] the loss is not finite with a learning rate of {}: none can be found",
        lowest);
  test.chosen = choose_learning_rate(test.rates, test.losses);
  return test;
}

BatchSizeTest find_batch_size(const FitOptions& options, const TrainingImages& images,
                              const ImageInput& input, Module& model) {
  constexpr std::int64_t smallest = 8, largest = 1024, min_steps = 4;
  constexpr double worthwhile = 1.05;
  ModelSnapshot snapshot(model);
  BatchSizeTest test;
  std::vector<std::string> others;
  double best = 0;
  const std::int64_t first = std::max(smallest, options.shards);
  for (std::int64_t size = first; size == first || size <= std::min(largest, images.count() / min_steps);
       size *= 2) {
    FitOptions probe = measuring(options);
    probe.batch_size = size;
    double rate = 0;
    try {
      rate = training_rate(probe, images, input, model, *options.device);
      snapshot.restore();
    } catch (const Error& error) {  // it does not fit into memory
      snapshot.restore();
      if (size == first) throw;
      others.push_back(fmt::format("{}: {}", size, error.what()));
      break;
    }
    if (rate < worthwhile * best) {
      others.push_back(fmt::format("{}: {} samples/s", size, format_rate(rate)));
      break;
    }
    if (best > 0) others.push_back(fmt::format("{}: {} samples/s", test.chosen, format_rate(best)));
    best = rate;
    test.chosen = size;
  }
  test.reason =
      fmt::format("{} samples/s{}{}", format_rate(best), others.empty() ? "" : "; ", fmt::join(others, ", "));
  return test;
}

}  // namespace tandem
