#include "tandem/study/augment.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/mnist.h"
#include "tandem/study/machine_report.h"
#include "tandem/text/format_number.h"
#include "tandem/train/device_choice.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/training_state.h"

namespace tandem {
namespace {

std::vector<AugmentCase> cases_for(std::int64_t available, const StudyOptions& options) {
  // Fewer images need more epochs until both runs converge, and more seeds, because the variance is higher.
  std::vector<AugmentCase> cases = {{1000, 60, 5}, {10000, 30, 3}, {60000, 15, 2}};
  if (options.quick) cases = {{1000, 20, 2}, {10000, 4, 1}};
  if (options.limit > 0 || available < cases.front().images) {
    // One case, with the epochs and seeds of the default case that is closest from below.
    const std::int64_t images = options.limit > 0 ? options.limit : available;
    AugmentCase only = cases.front();
    for (const AugmentCase& one : cases)
      if (one.images <= images) only = one;
    only.images = images;
    cases = {only};
  }
  std::erase_if(cases, [&](const AugmentCase& one) { return one.images > available; });
  for (AugmentCase& one : cases) {
    if (options.epochs > 0) one.epochs = options.epochs;
    if (options.seeds > 0) one.seeds = options.seeds;
  }
  // A constant learning rate ends with steps that are too large for both runs, and hurts one more than the
  // other depending on the images. A decaying rate removes that effect.
  if (!options.quick)
    for (std::size_t i = 0, count = cases.size(); i < count; ++i) {
      cases.push_back(cases[i]);
      cases.back().schedule = ScheduleKind::cosine;
    }
  return cases;
}

struct StudyData {
  DataSplit split;
  std::string note;  // why this data set was chosen; may be empty
};

StudyData data_for(const StudyOptions& options) {
  const std::int64_t digit_count = std::max<std::int64_t>(options.limit, options.quick ? 10000 : 60000);
  if (!options.data.empty()) return {load_split(options.data, "", {}, digit_count), ""};
  std::filesystem::path folder;
  try {
    folder = fetch_dataset("mnist", {.offline = true});
  } catch (const Error&) {
    return {load_split("digits", "", {}, digit_count),
            "MNIST is not in the cache (tandem fetch mnist downloads it). Synthetic digits were used "
            "instead; they are easier."};
  }
  return {load_mnist("mnist", folder), ""};
}

// The defaults of `tandem train` for this network.
TrainOptions train_options(const TrainingSetup& setup, const StudyOptions& options) {
  TrainOptions train = default_options("mlp", {});
  train.layers = setup.layers;
  train.transform = setup.recipe;
  if (!options.devices.empty()) train.device = options.devices.front();
  return train;
}

struct Training {
  AugmentResult::Curve curve;
  std::vector<double> epoch_ms;
  std::string engine;
};

Training run_training(const TrainOptions& options, const ImageSet& images, const ImageSet& test,
                      Device device) {
  TrainingState state(options, images, device);
  Training training{.curve = {}, .epoch_ms = {}, .engine = state.engine().description()};
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const Stopwatch watch;
    state.engine().run(epoch, 0, state.task().batches().steps());
    training.epoch_ms.push_back(watch.elapsed_ms());
    state.engine().store();
    training.curve.push_back(evaluate(state.model(), test, options.loss).accuracy);
  }
  return training;
}

}  // namespace

AugmentResult compare_augmentation(const TrainingSetup& setup, const AugmentCase& augment_case,
                                   const StudyOptions& options, StudyProgress& progress) {
  const DataSplit& data = setup.data;
  expect(augment_case.images <= data.train.count() && augment_case.epochs > 0 && augment_case.seeds > 0);
  TrainOptions train = train_options(setup, options);
  train.epochs = augment_case.epochs;
  train.schedule = augment_case.schedule;
  const DeviceChoice choice = choose_device(train, data.train.slice(0, augment_case.images));
  train.device = choice.device;
  train.augment_on = choice.augment_on;
  const ImageSet test = data.test.to(choice.device);
  AugmentResult result{.augment_case = augment_case,
                       .device = choice.device.to_string(),
                       .engine = {},
                       .plain = {},
                       .augmented = {},
                       .plain_epoch = {},
                       .augmented_epoch = {}};
  std::vector<double> plain_ms, augmented_ms;
  const std::int64_t parts = data.train.count() / augment_case.images;
  for (std::int64_t i = 0; i < augment_case.seeds; ++i) {
    if (i > 0 && progress.is_over()) {
      progress.leave_out(fmt::format("{}, {} of {} seeds", augment_case.setting(), augment_case.seeds - i,
                                     augment_case.seeds));
      result.augment_case.seeds = i;
      break;
    }
    progress.report(fmt::format("{}, seed {} of {}", augment_case.setting(), i + 1, augment_case.seeds));
    const std::int64_t begin = i % parts * augment_case.images;
    const ImageSet images = data.train.slice(begin, begin + augment_case.images);
    train.seed = options.seed + static_cast<std::uint64_t>(i);
    for (const bool augmented : {false, true}) {
      train.transform = augmented ? Transform(setup.recipe) : Transform();
      Training training = run_training(train, images, test, choice.device);
      (augmented ? result.augmented : result.plain).push_back(std::move(training.curve));
      std::vector<double>& ms = augmented ? augmented_ms : plain_ms;
      ms.insert(ms.end(), training.epoch_ms.begin(), training.epoch_ms.end());
      result.engine = training.engine;
    }
  }
  result.plain_epoch = timing_of(std::move(plain_ms));
  result.augmented_epoch = timing_of(std::move(augmented_ms));
  return result;
}

StudyReport study_augment(const StudyOptions& options) {
  StudyProgress progress(options);
  StudyData data = data_for(options);
  check_image_set(data.split.test, data.split.name);
  check_limit("augment", options, data.split);
  const TrainingSetup setup = training_setup("augment", options, std::move(data.split));
  StudyReport report{
      .study = "augment",
      .title = "Training with and without augmentation",
      .machine = report_facts(),
      .introduction = fmt::format(
          "Perceptrons {} with sigmoid activations are trained on {} by SGD with batch size 16 and a "
          "learning rate of 0.5, constant or (“decaying rate”) decreasing to 0 along a cosine. Each is "
          "trained once on the original images (plain) and once with augmentation that is sampled anew in "
          "every epoch ({}), with the same number of epochs and batches and the same initial weights. Every "
          "seed has its own weights, order and, while there are enough, training images. The accuracy is "
          "measured on the {} test images after every epoch.",
          setup.network(), setup.data.name, to_string(setup.recipe), format_count(setup.data.test.count())),
      .settings = setup.settings(),
      .rows = {},
      .findings = {},
      .plots = {}};
  if (!data.note.empty()) report.findings.push_back(data.note);
  for (const AugmentCase& one : cases_for(setup.data.train.count(), options)) {
    if (progress.is_over()) {
      progress.leave_out(one.setting());
      continue;
    }
    const AugmentResult result = compare_augmentation(setup, one, options, progress);
    for (StudyRow& row : augment_rows(result)) report.rows.push_back(std::move(row));
    report.findings.push_back(augment_finding(result));
    report.plots.push_back(augment_plot(result));
  }
  for (std::string& finding : progress.findings()) report.findings.push_back(std::move(finding));
  return report;
}

}  // namespace tandem
