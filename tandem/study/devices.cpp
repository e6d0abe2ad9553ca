#include "tandem/study/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/study/device_findings.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/measure.h"
#include "tandem/study/peaks.h"
#include "tandem/study/study_case.h"
#include "tandem/study/training_check.h"

namespace tandem {
namespace {

// Runs steps until an engine that tunes itself has settled. Returns the time per step of the last ones.
double warm_up(CaseTraining& training, double budget_ms) {
  constexpr std::int64_t max_total_steps = 400;
  // A CPU engine tries this many thread counts, each for at least one step.
  const std::int64_t min_total_steps = std::bit_width(static_cast<unsigned>(thread_count()));
  const std::int64_t max_chunk = training.batches().steps();
  std::int64_t count = 1, done = 0;
  const Stopwatch watch;
  double step_ms = 0;
  do {
    const Stopwatch chunk;
    training.engine().run(1, 0, count);
    step_ms = chunk.elapsed_ms() / static_cast<double>(count);
    done += count;
    count = std::min(2 * count, max_chunk);
  } while (done < min_total_steps ||
           (done < max_total_steps && watch.elapsed_ms() + step_ms * static_cast<double>(count) < budget_ms));
  return step_ms;
}

// Time of a whole epoch, scaled from as many of its steps as the budget allows.
Timing measure_epoch(CaseTraining& training, Device device, double budget_ms) {
  constexpr int repetitions = 5;
  const BatchPlan& batches = training.batches();
  const double step_ms = warm_up(training, budget_ms);
  const auto steps = static_cast<std::int64_t>(
      std::clamp(budget_ms / repetitions / step_ms, 1.0, static_cast<double>(batches.steps())));
  const int min_repetitions = step_ms * repetitions > 3 * budget_ms ? 2 : repetitions;
  const Timing timing =
      measure_wall(device, [&](int i) { training.engine().run(2 + i, 0, steps); },
                   {.budget_ms = budget_ms, .min_repetitions = min_repetitions, .max_repetitions = 50});
  const double run_samples = static_cast<double>(std::min(steps * batches.batch_size, batches.positions()));
  return scaled(timing, static_cast<double>(batches.positions()) / run_samples);
}

// The training images on one device, and the time to copy them there.
struct DeviceImages {
  Device device;
  ImageSet images;
  double copy_ms = 0;
};

std::vector<DeviceImages> copy_to_devices(const StudyOptions& options, const ImageSet& images) {
  const std::vector<Device> devices = options.devices.empty() ? all_devices() : options.devices;
  std::vector<DeviceImages> copies;
  for (const Device device : devices) {
    DeviceImages copy{.device = device, .images = images.to(device)};
    if (device.is_cuda())
      copy.copy_ms = measure_wall(device, [&](int) { images.to(device); },
                                  {.budget_ms = 100, .min_repetitions = 3, .max_repetitions = 10})
                         .median_ms;
    copies.push_back(std::move(copy));
  }
  return copies;
}

// Measures an epoch; a wrong row gets no times.
void add_figures(StudyRow& row, CaseTraining& training, const TrainingCase& training_case,
                 const DeviceImages& on, double budget_ms) {
  if (!row.agrees) return set_times(row, not_timed);
  const Timing timing = measure_epoch(training, on.device, budget_ms);
  set_times(row, timing);
  if (on.device.is_cuda()) row.figures["with_copies_ms"] = timing.median_ms + on.copy_ms;
  row.figures["samples_per_s"] = 1e3 * static_cast<double>(TrainingCase::samples) / timing.median_ms;
  row.figures["gflop_per_s"] = row.value("samples_per_s") * training_case.operations() / 1e9;
  row.figures["share_of_peak"] = row.value("gflop_per_s") / matmul_gflop_per_s(on.device, PeakPrecision::f32);
}

std::vector<StudyRow> run_training_case(const TrainingCase& training_case, const ImageSet& images,
                                        const std::vector<DeviceImages>& copies, const StudyOptions& options,
                                        StudyProgress& progress) {
  // Values kept per sample for the backward pass: rows of the widest layer, or about 16 images of the first
  // stage.
  double values_per_sample = 16 * 32 * TrainingCase::inputs;
  if (!training_case.is_convolutional())
    values_per_sample = static_cast<double>(std::ranges::max(training_case.layers)) *
                        static_cast<double>(training_case.layers.size());
  check_fits(
      "devices", training_case.name(),
      2 * (training_case.weights() + static_cast<double>(training_case.batch_size) * values_per_sample));
  CaseTraining reference(training_case, images, options.seed, CaseTraining::EngineKind::unfused);
  std::vector<StudyRow> rows;
  for (const DeviceImages& copy : copies)
    for (const std::optional<int> threads : training_threads(copy.device, options)) {
      StudyRow row{.case_name = training_case.name(),
                   .version = copy.device.is_cuda() ? "cuda" : "cpu",
                   .device = copy.device.to_string(),
                   .threads = threads,
                   .note = threads.value_or(0) > usable_cpus() ? "oversubscribed" : ""};
      if (!progress.start(
              fmt::format("{} on {}{}", row.case_name, row.device,
                          threads ? fmt::format(", {} thread{}", *threads, *threads == 1 ? "" : "s") : "")))
        continue;
      const ThreadCountScope scope(threads.value_or(thread_count()));
      CaseTraining training(training_case, copy.images, options.seed, CaseTraining::EngineKind::best,
                            threads.value_or(0));
      row.figures["max_error"] = training_error(training, reference);
      row.agrees = row.value("max_error") <= step_tolerance(training_case);
      add_figures(row, training, training_case, copy, options.quick ? 100 : 300);
      row.engine = training.engine().description();
      rows.push_back(std::move(row));
    }
  // Over the CPU with the fewest threads, which is the first row.
  for (StudyRow& row : rows)
    if (rows.front().version == "cpu" && rows.front().agrees && row.agrees)
      row.figures["speedup"] = rows.front().value("median_ms") / row.value("median_ms");
  return rows;
}

std::vector<std::string> default_cases(bool quick) {
  std::vector<std::string> networks{"784,32,10", "784,200,10", "784,1024,10"};
  if (!quick) networks.insert(networks.end(), {"784,1024,1024,10", "784,4096,4096,10"});
  std::vector<std::string> cases;
  for (const std::string& network : networks)
    for (const int batch : {16, 128, 1024}) cases.push_back(fmt::format("{} batch {}", network, batch));
  cases.push_back("cnn batch 128");
  return cases;
}

}  // namespace

StudyReport study_devices(const StudyOptions& options) {
  StudyReport report{.study = "devices", .title = "Training on each device", .machine = report_facts()};
  report.introduction = fmt::format(
      "Perceptrons with sigmoid activations and a convolutional network with six layers (cnn) are trained by "
      "SGD on {} random 28×28 images, the size of Fashion-MNIST. A perceptron is named by the sizes of its "
      "layers: 784,32,10 has 784 inputs, 32 hidden units and 10 classes. Times are per epoch with the images "
      "already on the device, scaled from as many steps as the time budget allows; “+ copies” adds the copy "
      "of all images to the GPU, which happens once per training run. The speed-up is over this machine's "
      "CPU, with the fewest threads if they were swept; the peak is a large f32 matrix product. Before "
      "measuring, each of the first {} steps must agree with the "
      "unfused operations on the CPU, within {:.1g} % (cnn: {:.1g} %) of what the step changes.",
      format_count(TrainingCase::samples), checked_steps, 100 * step_tolerance({.layers = {1, 1}}),
      100 * step_tolerance({}));
  report.versions = {{"cpu", options.threads.empty() ? "training with the fastest engine on all CPU cores"
                                                     : "training with the fastest engine on the CPU"},
                     {"cuda", "training with the fastest engine on the GPU"}};
  StudyProgress progress(options);
  const ImageSet images = random_training_images(options.seed);
  const std::vector<DeviceImages> copies = copy_to_devices(options, images);
  for (const std::string& name : options.cases.empty() ? default_cases(options.quick) : options.cases) {
    if (progress.is_over()) {
      progress.leave_out(name);
      continue;
    }
    const std::vector<StudyRow> rows =
        run_training_case(parse_training_case(name), images, copies, options, progress);
    report.rows.insert(report.rows.end(), rows.begin(), rows.end());
  }
  bound_shares(report.rows);
  if (cuda_device_count() == 0) report.findings.push_back("No GPU was measured: " + why_no_cuda() + ".");
  for (std::string& finding : device_findings(report.rows, usable_cpus()))
    report.findings.push_back(std::move(finding));
  for (std::string& finding : progress.findings()) report.findings.push_back(std::move(finding));
  report.plots = device_plots(report.rows, usable_cpus());
  return report;
}

}  // namespace tandem
