#include "tandem/train/run_setup.h"

#include <algorithm>
#include <map>
#include <string>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/ops/cast.h"

namespace tandem {

std::unique_ptr<Timeline> start_timeline(const FitOptions& options, const Place& place) {
  if (options.trace.empty()) return nullptr;
  constexpr std::size_t min_bars = 2000;
  auto timeline = std::make_unique<Timeline>(
      std::max(Timeline::default_max_bars / static_cast<std::size_t>(place.size), min_bars));
  if (place.rank != 0) return timeline;
  // The run folder itself may not exist yet.
  const auto inside = (options.run_folder / options.trace.filename()).lexically_normal();
  if (options.run_folder.empty() || options.trace.lexically_normal() != inside)
    check_writable("train", options.trace);
  return timeline;
}

void check_threshold(const ThresholdRequest& threshold, const TrainingData& data) {
  if (threshold.empty()) return;
  const std::size_t classes = data.train.classes.size();
  check(classes == 2, "[train] expected two classes for a threshold, got {}", classes);
  const std::vector<std::int32_t> labels = data.validation.labels.to_vector<std::int32_t>();
  const auto second = std::ranges::count(labels, 1);
  check(!threshold.automatic || (second > 0 && second < std::ssize(labels)),
        "[train] expected validation images of both classes to choose a threshold, got {} and {}",
        std::ssize(labels) - second, second);
}

EpochRecord epoch_record(const RunSetup& setup, const RunPosition& position, const Evaluation& validated,
                         double learning_rate) {
  const ImageSet& validation = setup.data.validation;
  const auto samples = static_cast<double>(position.sums.samples);
  EpochRecord record{.epoch = static_cast<int>(position.epoch) + 1,
                     .train_loss = position.sums.loss / samples,
                     .train_accuracy = static_cast<double>(position.sums.correct) / samples,
                     .val_loss = validated.loss,
                     .val_accuracy = validated.accuracy,
                     .val_count = validation.count(),
                     .learning_rate = learning_rate,
                     .seconds = position.epoch_seconds,
                     .samples_per_second = samples / std::max(position.epoch_seconds, 1e-9),
                     .waited_seconds = position.waited_seconds,
                     .metrics = {}};
  if (setup.options.shards > 1) record.exchange_seconds = position.exchange_seconds;
  if (setup.options.metrics.empty()) return record;
  if (setup.cross_validation && setup.options.has_steps()) {
    record.metrics = setup.cross_validation->epochs.at(static_cast<std::size_t>(position.epoch)).metrics;
    return record;
  }
  const Tensor outputs = Tensor::from(validated.outputs, {validation.count(), validated.classes});
  const Tensor labels = cast(validation.labels.to(cpu_device), DType::i64);
  for (const Metric& metric : setup.options.metrics)
    record.metrics.push_back({metric.name, metric.compute(outputs, labels)});
  return record;
}

ModelInfo model_info(const RunSetup& setup, const EpochRecord& record) {
  const TrainingImages& images = setup.data.train;
  return {.architecture = setup.architecture,
          .classes = images.classes,
          .height = images.height,
          .width = images.width,
          .channels = images.channels,
          .pixel_scale = setup.input.pixel_scale,
          .norm = setup.input.norm,
          .transform = setup.data.evaluation_transform,
          .data = setup.data.source,
          .command = setup.options.command,
          .epoch = record.epoch,
          .accuracy = record.val_accuracy,
          .decision = setup.decision};
}

std::vector<SkippedSample> files_not_read(const TrainingData& data, const BatchSource& source) {
  if (!data.train.photographs) return {};
  std::map<std::string, SkippedSample> all;  // a file may be in two sets
  for (const SkippedSample& sample : data.bad) all.insert({sample.name, sample});
  for (const SkippedSample& sample : source.skipped()) all.insert({sample.name, sample});
  std::vector<SkippedSample> sorted;
  sorted.reserve(all.size());
  for (const auto& [name, sample] : all) sorted.push_back(sample);
  return sorted;
}

}  // namespace tandem
