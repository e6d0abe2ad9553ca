#include "tandem/study/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/study/device_findings.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/measure.h"
#include "tandem/study/peaks.h"
#include "tandem/study/study_case.h"
#include "tandem/study/training_case.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/engines/module_engine.h"

namespace tandem {
namespace {

// Relative to the change of a parameter. Rounding errors stay far below, a wrong product is far above.
constexpr double tolerance = 0.01;
constexpr std::int64_t checked_steps = 3;

ImageSet random_images(std::uint64_t seed) {
  ImageSet set;
  set.images = random_integers({TrainingCase::samples, TrainingCase::side, TrainingCase::side, 1}, 0, 256,
                               {.seed = seed, .stream = 0, .dtype = DType::u8});
  set.labels = random_integers({TrainingCase::samples}, 0, TrainingCase::classes,
                               {.seed = seed, .stream = 1, .dtype = DType::i32});
  set.classes.resize(TrainingCase::classes);
  return set;
}

std::vector<std::vector<float>> parameters_of(const Module& model) {
  std::vector<std::vector<float>> values;
  for (const NamedTensor& parameter : model.state_dict())
    if (parameter.tensor.dtype() == DType::f32) values.push_back(parameter.tensor.to_vector<float>());
  return values;
}

enum class EngineKind { best, reference };

// One network on one device, ready to train.
class Training {
 public:
  Training(const TrainingCase& training_case, const ImageSet& images, std::uint64_t seed, EngineKind kind)
      : model_(model_on(training_case, seed, images.images.device())),
        optimizer_(model_->parameters(), {}, 0.1),
        source_(images, {.samples = images.count(), .batch_size = training_case.batch_size, .seed = seed}),
        task_{.model = *model_,
              .optimizer = optimizer_,
              .source = source_,
              .input = {.flat = !training_case.is_convolutional(),
                        .height = TrainingCase::side,
                        .width = TrainingCase::side,
                        .channels = 1}} {
    if (kind == EngineKind::best)
      engine_ = make_engine(task_);
    else
      engine_ = std::make_unique<ModuleEngine>(task_);
  }

  Engine& engine() { return *engine_; }
  const BatchPlan& batches() const { return task_.batches(); }
  std::vector<std::vector<float>> parameters() const { return parameters_of(*model_); }

  TrainedWeights first_steps() {
    TrainedWeights trained;
    trained.loss = engine_->run(0, 0, std::min(checked_steps, task_.batches().steps())).loss;
    engine_->store();
    trained.parameters = parameters();
    return trained;
  }

 private:
  static std::unique_ptr<Module> model_on(const TrainingCase& training_case, std::uint64_t seed,
                                          Device device) {
    std::unique_ptr<Module> model;
    if (training_case.is_convolutional())
      model = std::make_unique<Cnn>(CnnOptions{.classes = TrainingCase::classes, .seed = seed});
    else
      model = make_mlp({.layers = training_case.layers, .seed = seed});
    model->to(device);
    return model;
  }

  std::unique_ptr<Module> model_;
  FusedOptimizer optimizer_;
  InMemorySource source_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
};

// Runs steps until an engine that tunes itself has settled. Returns the time per step of the last ones.
double warm_up(Training& training, double budget_ms) {
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
Timing measure_epoch(Training& training, Device device, double budget_ms) {
  constexpr int repetitions = 5;
  const BatchPlan& batches = training.batches();
  const double step_ms = warm_up(training, budget_ms);
  const auto steps = static_cast<std::int64_t>(
      std::clamp(budget_ms / repetitions / step_ms, 1.0, static_cast<double>(batches.steps())));
  const int min_repetitions = step_ms * repetitions > 3 * budget_ms ? 2 : repetitions;
  Timing timing =
      measure_wall(device, [&](int i) { training.engine().run(2 + i, 0, steps); },
                   {.budget_ms = budget_ms, .min_repetitions = min_repetitions, .max_repetitions = 50});
  const double run_samples = static_cast<double>(std::min(steps * batches.batch_size, batches.positions()));
  const double scale = static_cast<double>(batches.positions()) / run_samples;
  for (double* const ms : {&timing.median_ms, &timing.min_ms, &timing.max_ms}) *ms *= scale;
  return timing;
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

std::vector<StudyRow> run_training_case(const TrainingCase& training_case, const ImageSet& images,
                                        const std::vector<DeviceImages>& copies,
                                        const StudyOptions& options) {
  // Values kept per sample for the backward pass: rows of the widest layer, or about 16 images of the first
  // stage.
  double values_per_sample = 16 * 32 * TrainingCase::inputs;
  if (!training_case.is_convolutional())
    values_per_sample = static_cast<double>(std::ranges::max(training_case.layers)) *
                        static_cast<double>(training_case.layers.size());
  check_fits(
      "devices", training_case.name(),
      2 * (training_case.weights() + static_cast<double>(training_case.batch_size) * values_per_sample));
  std::vector<std::vector<float>> start;
  TrainedWeights expected;
  {
    Training reference(training_case, images, options.seed, EngineKind::reference);
    start = reference.parameters();
    expected = reference.first_steps();
  }
  std::vector<StudyRow> rows;
  for (const DeviceImages& copy : copies) {
    Training training(training_case, copy.images, options.seed, EngineKind::best);
    StudyRow row{.case_name = training_case.name(),
                 .version = copy.device.is_cuda() ? "cuda" : "cpu",
                 .device = copy.device.to_string()};
    row.figures["max_error"] = training_error(start, expected, training.first_steps());
    row.agrees = row.value("max_error") <= tolerance;
    if (!row.agrees) {
      set_times(row, not_timed);
    } else {
      const Timing timing = measure_epoch(training, copy.device, options.quick ? 100 : 300);
      set_times(row, timing);
      if (copy.device.is_cuda()) row.figures["with_copies_ms"] = timing.median_ms + copy.copy_ms;
      row.figures["samples_per_s"] = 1e3 * static_cast<double>(TrainingCase::samples) / timing.median_ms;
      row.figures["gflop_per_s"] = row.value("samples_per_s") * training_case.operations() / 1e9;
      row.figures["share_of_peak"] =
          row.value("gflop_per_s") / matmul_gflop_per_s(copy.device, PeakPrecision::f32);
    }
    row.engine = training.engine().description();
    rows.push_back(std::move(row));
  }
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

double max_abs_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double max_difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    max_difference = std::max(max_difference, difference);
  }
  return max_difference;
}

// Infinite when the ratio is undefined.
double relative(double difference, double whole) {
  if (difference == 0) return 0;
  const double ratio = difference / whole;
  return std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity();
}

}  // namespace

double training_error(const std::vector<std::vector<float>>& start, const TrainedWeights& expected,
                      const TrainedWeights& result) {
  double error = relative(std::abs(result.loss - expected.loss), std::abs(expected.loss));
  for (std::size_t i = 0; i < start.size(); ++i)
    error = std::max(error, relative(max_abs_difference(result.parameters[i], expected.parameters[i]),
                                     max_abs_difference(expected.parameters[i], start[i])));
  return error;
}

StudyReport study_devices(const StudyOptions& options) {
  StudyReport report{.study = "devices", .title = "Training on each device", .machine = report_facts()};
  report.introduction = fmt::format(
      "Perceptrons with sigmoid activations and a convolutional network with six layers (cnn) are trained by "
      "SGD on {} random 28×28 images, the size of Fashion-MNIST. Times are per epoch with the images already "
      "on the device, scaled from as many steps as the time budget allows; “+ copies” adds the copy of all "
      "images to the GPU, which happens once per training run. The speed-up is over this machine's CPU; the "
      "peak is a large f32 matrix product. Before measuring, {} steps from the same initial weights must "
      "agree with the unfused operations on the CPU.",
      format_count(TrainingCase::samples), checked_steps);
  const ImageSet images = random_images(options.seed);
  const std::vector<DeviceImages> copies = copy_to_devices(options, images);
  for (const std::string& name : options.cases.empty() ? default_cases(options.quick) : options.cases) {
    const std::vector<StudyRow> rows = run_training_case(parse_training_case(name), images, copies, options);
    report.rows.insert(report.rows.end(), rows.begin(), rows.end());
  }
  bound_shares(report.rows);
  if (cuda_device_count() == 0) report.findings.push_back("No GPU was measured: " + why_no_cuda() + ".");
  for (std::string& finding : device_findings(report.rows)) report.findings.push_back(std::move(finding));
  report.plots = device_plots(report.rows);
  return report;
}

}  // namespace tandem
