#include "tandem/study/workers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tandem/core/parallel.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/data/synthetic/digits.h"
#include "tandem/nn/mlp.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/batch_hash.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/measure.h"
#include "tandem/study/study_progress.h"
#include "tandem/study/training_setup.h"
#include "tandem/study/worker_findings.h"
#include "tandem/text/format_number.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/training_data.h"

namespace tandem {
namespace {

constexpr std::int64_t batch_size = 16;

// Those of the options in increasing order, else 1, 2, 4, … and the number of CPUs.
std::vector<int> worker_counts(const StudyOptions& options) {
  std::vector<int> counts = increasing(options.workers);
  if (!counts.empty()) return counts;
  const int max_workers = default_worker_count();
  for (int count = 1; count < max_workers; count *= 2) counts.push_back(count);
  counts.push_back(max_workers);
  return counts;
}

// A perceptron, trained on images from a source.
class Training {
 public:
  // `threads` as in TrainingTask.
  Training(std::unique_ptr<BatchSource> source, const std::vector<std::int64_t>& layers, std::uint64_t seed,
           int threads)
      : source_(std::move(source)),
        model_(model_on(source_->device(), layers, seed)),
        optimizer_(model_->parameters(), {}, 0.5),
        task_{.model = *model_,
              .optimizer = optimizer_,
              .source = *source_,
              .learning_rate = 0.5,
              .threads = threads},
        engine_(make_engine(task_)) {}

  double run_epoch() { return engine_->run(epoch_++, 0, source_->plan().steps()).loss; }
  double waited_ms() const { return source_->waited_ms(); }
  std::string engine() const { return engine_->description(); }

 private:
  static std::unique_ptr<Module> model_on(Device device, const std::vector<std::int64_t>& layers,
                                          std::uint64_t seed) {
    std::unique_ptr<Module> model = make_mlp({.layers = layers, .seed = seed});
    model->to(device);
    return model;
  }

  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<Module> model_;
  FusedOptimizer optimizer_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
  std::int64_t epoch_ = 0;
};

// The training images; synthetic digits of the study's seed unless the options name a data set.
DataSplit worker_data(const StudyOptions& options) {
  const std::int64_t count = options.limit > 0 ? options.limit : options.quick ? 6000 : 60000;
  if (options.data.empty()) return {.name = "synthetic digits", .train = make_digits(count, options.seed)};
  DataSplit data = load_split(options.data, "", {}, count);
  check_limit("workers", options, data);
  data.train = data.train.slice(0, std::min(count, data.train.count()));
  return data;
}

class WorkerStudy {
 public:
  WorkerStudy(const StudyOptions& options, const TrainingSetup& setup, StudyProgress& progress)
      : options_(options),
        setup_(setup),
        progress_(progress),
        images_(setup.data.train),
        plan_{.samples = images_.count(), .batch_size = batch_size, .seed = options.seed},
        measure_{.budget_ms = options.quick ? 100.0 : 1000.0,
                 .min_repetitions = options.quick ? 2 : 3,
                 .max_repetitions = 20} {}

  std::vector<StudyRow> rows() {
    for (const WorkerKind kind : {WorkerKind::thread, WorkerKind::process})
      for (const int count : worker_counts(options_)) add_loading(kind, count);
    for (const Device device : options_.devices.empty() ? all_devices() : options_.devices) {
      std::optional<double> expected;  // loss of the first epoch
      for (const std::optional<int> threads : training_threads(device, options_)) {
        const ThreadCountScope scope(threads.value_or(thread_count()));
        add_plain_training(device, threads);
        for (const WorkerKind kind : {WorkerKind::thread, WorkerKind::process})
          for (const int count : worker_counts(options_))
            add_training(device, threads, kind, count, expected);
      }
    }
    return std::move(rows_);
  }

 private:
  LoaderOptions loader_options(WorkerKind kind, int count) const {
    LoaderOptions options;
    options.workers = count;
    options.kind = kind;
    options.program = options_.program;
    return options;
  }

  StudyRow row_for(const std::string& case_name, WorkerKind kind, int count, Device device) const {
    return {.case_name = case_name,
            .version = kind == WorkerKind::thread ? "thread" : "process",
            .device = device.to_string(),
            .workers = count,
            .note = count > usable_cpus() ? "oversubscribed" : ""};
  }

  // The trainer's threads, where they were swept.
  static void set_threads(StudyRow& row, std::optional<int> threads) {
    row.threads = threads;
    if (threads.value_or(0) > usable_cpus()) row.note = "oversubscribed";
  }

  // Fills in the figures of one epoch; a wrong row gets none.
  void finish(StudyRow row, const Timing& timing) {
    set_times(row, timing);
    row.figures["samples_per_s"] = 1e3 * static_cast<double>(plan_.samples) / timing.median_ms;
    if (row.workers) {
      const auto same = [&](const StudyRow& other) {
        return other.case_name == row.case_name && other.version == row.version;
      };
      const auto fewest = std::ranges::find_if(rows_, same);
      const StudyRow& base = fewest == rows_.end() ? row : *fewest;
      row.figures["efficiency"] =
          row.value("samples_per_s") / *row.workers * *base.workers / base.value("samples_per_s");
    }
    if (!row.agrees) {
      set_times(row, not_timed);
      row.figures["samples_per_s"] = row.figures["efficiency"] = row.figures["waited_ms"] = std::nullopt;
    }
    rows_.push_back(std::move(row));
  }

  bool start(const StudyRow& row) {
    return progress_.start(fmt::format("{}, {}", row.case_name, version_label(row)));
  }

  void add_loading(WorkerKind kind, int count) {
    StudyRow row = row_for(std::string(loading_case), kind, count, cpu_device);
    if (!start(row)) return;
    Loader loader(detail::sample_store(images_), plan_, setup_.recipe, loader_options(kind, count));
    BatchHashes hashes(plan_, images_.image_size());
    hashes.add(loader, {0, 0, plan_.positions()});
    if (expected_.empty()) expected_ = hashes.combined();
    row.agrees = hashes.combined() == expected_;
    std::int64_t epoch = 1;
    // An epoch that the workers had prepared before its clock started takes no time, and the next one takes
    // longer. A repetition therefore lasts for several rings of images.
    constexpr std::int64_t rings = 10;
    const std::int64_t epochs =
        std::max<std::int64_t>(1, rings * loader.slots() / load_epoch(loader, epoch++));
    const Timing timing = measure_wall(
        cpu_device,
        [&](int) {
          for (std::int64_t i = 0; i < epochs; ++i) load_epoch(loader, epoch++);
        },
        measure_);
    finish(std::move(row), scaled(timing, 1 / static_cast<double>(epochs)));
  }

  // Returns the number of blocks.
  std::int64_t load_epoch(Loader& loader, std::int64_t epoch) const {
    std::int64_t blocks = 0;
    for (std::int64_t first = 0; first < plan_.positions(); ++blocks) {
      const LoadedBlock block = loader.acquire(epoch, first);
      loader.release(block);
      first += block.count;
    }
    return blocks;
  }

  void add_plain_training(Device device, std::optional<int> threads) {
    StudyRow row{.case_name = training_case(device.to_string(), threads),
                 .version = "plain",
                 .device = device.to_string()};
    set_threads(row, threads);
    if (!start(row)) return;
    Training training(std::make_unique<InMemorySource>(images_.to(device), plan_), setup_.layers,
                      options_.seed, threads.value_or(0));
    training.run_epoch();
    const Timing timing = measure_wall(
        device, [&](int) { training.run_epoch(); }, measure_);
    row.engine = training.engine();
    finish(std::move(row), timing);
  }

  void add_training(Device device, std::optional<int> threads, WorkerKind kind, int count,
                    std::optional<double>& expected) {
    StudyRow row = row_for(training_case(device.to_string(), threads), kind, count, device);
    set_threads(row, threads);
    if (!start(row)) return;
    const LoaderOptions loader = loader_options(kind, count);
    Training training(
        make_source(detail::sample_store(images_), plan_, setup_.recipe, device, loader, /*on_gpu=*/false),
        setup_.layers, options_.seed, threads.value_or(0));
    // The same batches give the same loss; a different batch changes its leading digits.
    const double loss = training.run_epoch();
    if (!expected) expected = loss;
    row.agrees = std::abs(loss - *expected) <= 1e-6 * std::abs(*expected);
    const double waited_before = training.waited_ms();
    int epochs = 0;
    const Timing timing = measure_wall(
        device,
        [&](int) {
          training.run_epoch();
          ++epochs;
        },
        measure_);
    row.figures["waited_ms"] = (training.waited_ms() - waited_before) / epochs;
    row.engine = training.engine();
    finish(std::move(row), timing);
  }

  const StudyOptions& options_;
  const TrainingSetup& setup_;
  StudyProgress& progress_;
  ImageSet images_;
  BatchPlan plan_;
  MeasureOptions measure_;
  std::string expected_;  // hash of the first epoch's batches
  std::vector<StudyRow> rows_;
};

}  // namespace

StudyReport study_workers(const StudyOptions& options) {
  StudyProgress progress(options);
  const TrainingSetup setup = training_setup("workers", options, worker_data(options));
  WorkerStudy study(options, setup, progress);
  StudyReport report{.study = "workers",
                     .title = fmt::format("Augmentation with {} workers",
                                          options.workers.empty()
                                              ? "1, 2, 4, …"
                                              : fmt::format("{}", fmt::join(worker_counts(options), ", "))),
                     .machine = report_facts(),
                     .introduction = fmt::format(
                         "{} {} images of {} are augmented ({}) by threads or processes: "
                         "first as fast as possible, then while training {} with sigmoid "
                         "activations and batch size {}. Times are per epoch; “waited” is how long "
                         "the trainer waited for images, “efficiency” the images per second and "
                         "worker, relative to the fewest workers. Before measuring, the SHA-256 of all "
                         "batches of an epoch must be the same for every number and kind of "
                         "workers, and so must the loss of the first training epoch.",
                         format_count(setup.data.train.count()), image_description(setup.data.train),
                         setup.data.name, to_string(setup.recipe), setup.network(), batch_size),
                     .settings = setup.settings(),
                     .rows = study.rows(),
                     .findings = {},
                     .plots = {}};
  report.versions = {{"thread", "workers are threads of this process"},
                     {"process", "workers are processes of their own, connected by shared memory"},
                     {"plain", "training without augmentation and without workers"}};
  report.findings = worker_findings(report.rows, usable_cpus());
  for (std::string& finding : progress.findings()) report.findings.push_back(std::move(finding));
  report.plots = worker_plots(report.rows, usable_cpus());
  return report;
}

}  // namespace tandem
