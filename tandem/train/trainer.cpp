#include "tandem/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/write_file.h"
#include "tandem/files/fetch.h"
#include "tandem/report/csv.h"
#include "tandem/report/training_page.h"
#include "tandem/text/format_number.h"
#include "tandem/train/device_choice.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/event_file.h"
#include "tandem/train/pretrained.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/run_report.h"
#include "tandem/train/warm_start.h"

namespace tandem {
namespace {

constexpr double chunk_ms = 150;  // between polling signals and reporting progress

class Trainer {
 public:
  Trainer(const TrainOptions& options, const RunOptions& run, const TrainCallbacks& callbacks)
      : options_(options), run_(run), callbacks_(callbacks) {}

  TrainResult train() {
    prepare();
    const TrainResult result = run();
    write_trace();
    return result;
  }

 private:
  TrainResult run() {
    while (position_.epoch < options_.epochs && !should_stop_early()) {
      if (const int signal = run_epoch(); signal != 0) return make_result(signal);
      finish_epoch();
    }
    return finish();
  }

  void log(const std::string& line) const {
    if (callbacks_.on_message) callbacks_.on_message(line);
  }

  // ---- before the first step

  void prepare() {
    check_options(options_);
    options_.augment = normalize_recipe(options_.augment);
    if (!run_.folder.empty()) check_run_folder(run_.folder, run_.resume);
    prepare_trace();
    const std::future<void> warm_up = start_warm_up(options_);
    {
      const TimelineSpan span(timeline(), "load data", {});
      data_ = load_training_data(options_, callbacks_.on_message);
    }
    check_model_fits_data(options_, data_.train);
    log(fmt::format(
        "Data: {}, {} training{}{} {} images, {}, {} classes", data_.name, format_count(data_.train.count()),
        data_.held_out ? fmt::format(", {} validation and ", format_count(data_.validation.count()))
                       : " and ",
        format_count(data_.test.count()), data_.tested_on, image_description(data_.train),
        data_.train.classes.size()));
    const std::filesystem::path pretrained = pretrained_file();
    std::unique_ptr<Module> model = new_model(options_, data_.train);  // while the GPU warms up
    const DeviceChoice choice = [&] {
      const TimelineSpan span(timeline(), "choose device", {});
      if (warm_up.valid()) warm_up.wait();
      return choose_device(options_, data_.train);
    }();
    options_.device = choice.device.to_string();
    options_.augment_on = choice.augment_on;
    options_.workers = choice.workers;
    log(fmt::format("Device: {} ({})", options_.device, choice.reason));
    state_.emplace(std::move(model), options_, data_.train, choice.device, callbacks_.on_message, timeline());
    if (!pretrained.empty())
      log(fmt::format("Pretrained: {}{}", pretrained.string(),
                      load_pretrained(state_->model(), pretrained) ? ", with a new last layer" : ""));
    for (const NamedTensor& each : state_->model().state_dict())
      model_bytes_ += each.tensor.numel() * static_cast<std::int64_t>(size_of(each.tensor.dtype()));
    folder_ = make_run_folder(run_.folder, data_.name, options_.model);
    if (run_.resume) resume();
    log("Engine: " + state_->engine().description());
    if (options_.augment != "none" || data_.train.photos)
      log(fmt::format("Augmentation: {}; {}", options_.augment, state_->task().source.description()));
    log("Run folder: " + folder_.path.string());
    data_.validation = data_.validation.to(choice.device);
    evaluator_.emplace(state_->model(), data_.validation, options_.loss, state_->task().input);

    write_file("train", folder_.config(), to_toml(to_table(options_)));
    write_log();
    events_.emplace(folder_.events(), position_.epoch);
    seconds_before_ = position_.total_seconds;
    run_watch_ = {};
  }

  // The file of initial weights; empty if there is none or a checkpoint replaces them.
  std::filesystem::path pretrained_file() const {
    std::error_code ignored;
    if (run_.resume && std::filesystem::exists(RunFolder{run_.folder}.checkpoint(), ignored)) return {};
    if (options_.pretrained == "none") return {};
    if (options_.pretrained != "auto") return options_.pretrained;
    return fetch_weights(options_.model, {.on_message = callbacks_.on_message});
  }

  void prepare_trace() {
    if (run_.trace.empty()) return;
    // The run folder itself may not exist yet.
    const auto inside = (run_.folder / run_.trace.filename()).lexically_normal();
    if (run_.folder.empty() || run_.trace.lexically_normal() != inside) check_writable("train", run_.trace);
    timeline_.emplace();
  }

  void resume() {
    remove_temporary_files(folder_);
    if (std::optional<RunPosition> found = load_checkpoint(folder_, options_, *state_)) {
      position_ = std::move(*found);
      changed_ = false;
      log(fmt::format("Resuming {} at epoch {}, step {}", folder_.path.string(), position_.epoch + 1,
                      position_.step + 1));
    } else {
      log(fmt::format("No checkpoint in {} yet: starting from the beginning", folder_.path.string()));
    }
  }

  // ---- an epoch

  const BatchPlan& batches() const { return state_->task().batches(); }

  // Runs the rest of the epoch. Returns the signal that ended it early, or 0.
  int run_epoch() {
    while (position_.step < batches().steps()) {
      const int signal = callbacks_.stop_signal ? callbacks_.stop_signal() : 0;
      const bool requested = callbacks_.save_requested && callbacks_.save_requested();
      if (signal != 0 || requested || save_watch_.elapsed_ms() >= 1000 * run_.save_every_seconds) save();
      if (signal != 0) return signal;
      run_chunk();
    }
    return 0;
  }

  // Runs as many steps as take about chunk_ms. Their number does not affect the result.
  void run_chunk() {
    const std::int64_t stride = state_->engine().stride();
    const std::int64_t end = (position_.step + chunk_steps_ + stride - 1) / stride * stride;
    const std::int64_t count = std::min(end, batches().steps()) - position_.step;
    const BatchSource& source = state_->task().source;
    const double waited_ms = source.waited_ms();
    const Stopwatch watch;
    const StepSums sums = state_->engine().run(position_.epoch, position_.step, count);
    const double ms = watch.elapsed_ms();
    end_span();
    if (!std::isfinite(sums.loss))
      fail_diverged(count == 1
                        ? fmt::format("at step {}", position_.step + 1)
                        : fmt::format("in steps {} to {}", position_.step + 1, position_.step + count));
    position_.step += count;
    position_.sums += sums;
    position_.epoch_seconds += ms / 1000;
    position_.waited_seconds += (source.waited_ms() - waited_ms) / 1000;
    changed_ = true;
    const double wanted = chunk_ms * static_cast<double>(count) / std::max(ms, 1e-3);
    chunk_steps_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, 8 * chunk_steps_);
    session_samples_ += sums.samples;
    session_seconds_ += ms / 1000;
    if (callbacks_.on_progress)
      callbacks_.on_progress({.epoch = static_cast<int>(position_.epoch) + 1,
                              .epochs = static_cast<int>(options_.epochs),
                              .position = position_.sums.samples,
                              .total = batches().positions(),
                              .samples_per_second = static_cast<double>(session_samples_) / session_seconds_,
                              .loss = position_.sums.loss / static_cast<double>(position_.sums.samples)});
  }

  [[noreturn]] void fail_diverged(const std::string& where) const {
    std::error_code ignored;
    fail("[train] the loss is not finite {} of epoch {}: try a lower learning rate ({})", where,
         position_.epoch + 1,
         std::filesystem::exists(folder_.checkpoint(), ignored)
             ? "the last good checkpoint is " + folder_.checkpoint().string()
             : "no checkpoint was saved before");
  }

  // Weights can become NaN in an update whose loss was still finite.
  void store_finite() {
    state_->engine().store();
    if (!is_finite(*state_)) fail_diverged(fmt::format("after step {}", position_.step));
  }

  void save() {
    save_watch_ = {};
    if (!changed_) return;
    store_finite();
    write_state();
  }

  // The state must be stored and finite. The best model is written before the checkpoint: if the process is
  // killed in between, the resumed run repeats the epochs since the last checkpoint and writes it again.
  void write_state() {
    const Stopwatch watch;
    std::optional<PendingFile> checkpoint;
    const auto start = [&] {
      position_.total_seconds = elapsed_seconds();
      checkpoint.emplace(start_checkpoint(folder_, options_, *state_, position_));
    };
    if (pending_best_) {
      const TimelineSpan span(timeline(), "save best model", {});
      start();  // both files are written at the same time, the larger one first
      start_model(folder_.best(), pending_best_->weights, pending_best_->info).finish();
      pending_best_.reset();
    }
    const TimelineSpan span(timeline(), "save checkpoint", {});
    if (!checkpoint) start();
    checkpoint->finish();
    changed_ = false;
    save_watch_ = {};
    save_ms_ = watch.elapsed_ms();
  }

  // Large models are not saved after every short epoch, which could take longer than training.
  bool should_save_epoch() const {
    constexpr std::int64_t small_bytes = 4 << 20;
    constexpr double max_share = 0.05, bytes_per_ms = 1e6;
    const double cost_ms = std::max(save_ms_, 2 * static_cast<double>(model_bytes_) / bytes_per_ms);
    return model_bytes_ <= small_bytes || save_watch_.elapsed_ms() * max_share >= cost_ms;
  }

  void keep_best(const EpochRecord& record, const Evaluation& validated) {
    if (data_.train.photos && !data_.held_out) best_evaluation_ = validated;
    pending_best_ = PendingBest{.weights = {}, .info = model_info(record)};
    for (const NamedTensor& each : state_->model().state_dict())
      pending_best_->weights.push_back({each.name, each.tensor.clone()});
  }

  void finish_epoch() {
    store_finite();
    const Evaluation validated = traced_evaluation([&] { return evaluator_->run(); });
    const StepSums& sums = position_.sums;
    const auto samples = static_cast<double>(sums.samples);
    const EpochRecord record{
        .epoch = static_cast<int>(position_.epoch) + 1,
        .train_loss = sums.loss / samples,
        .train_accuracy = static_cast<double>(sums.correct) / samples,
        .val_loss = validated.loss,
        .val_accuracy = validated.accuracy,
        .learning_rate = learning_rate_at(state_->task().schedule, options_.learning_rate, position_.epoch,
                                          batches().steps() - 1, batches().steps()),
        .seconds = position_.epoch_seconds,
        .samples_per_second = samples / std::max(position_.epoch_seconds, 1e-9),
        .waited_seconds = position_.waited_seconds};
    position_.records.push_back(record);
    ++position_.epoch;
    position_.step = 0;
    position_.sums = {};
    position_.epoch_seconds = 0;
    position_.waited_seconds = 0;
    changed_ = true;
    if (position_.best()->epoch == record.epoch) keep_best(record, validated);
    write_events(record);
    append_file("train", folder_.log(), epoch_csv_row(record));
    write_bad_images();
    if (should_save_epoch()) write_state();
    if (callbacks_.on_epoch) callbacks_.on_epoch(record);
  }

  // Runs an evaluation with a span on the timeline.
  template <class Compute>
  Evaluation traced_evaluation(const Compute& compute) {
    const StreamView stream = current_stream(state_->task().source.device());
    if (timeline_) timeline_->begin("evaluate", {}, stream);
    const Evaluation evaluation = compute();
    end_span();
    return evaluation;
  }

  bool should_stop_early() const {
    return options_.early_stopping > 0 && position_.best() != nullptr &&
           position_.epoch - position_.best()->epoch >= options_.early_stopping;
  }

  ModelInfo model_info(const EpochRecord& record) const {
    const TrainingImages& images = data_.train;
    return {.architecture = architecture_of(options_, images),
            .classes = images.classes,
            .height = images.height,
            .width = images.width,
            .channels = images.channels,
            .pixel_scale = state_->task().input.pixel_scale,
            .norm = state_->task().input.norm,
            .transform = images.photos ? to_string(options_.evaluation_recipe()) : "",
            .data = options_.data,
            .command = run_.command,
            .epoch = record.epoch,
            .accuracy = record.val_accuracy};
  }

  // The epochs of the checkpoint; each later epoch appends a row.
  void write_log() const {
    std::string text = epoch_csv_header();
    for (const EpochRecord& record : position_.records) text += epoch_csv_row(record);
    write_file("train", folder_.log(), text);
  }

  // Writes the unreadable photographs found so far, sorted by path. Returns their number.
  std::size_t write_bad_images() {
    std::map<std::string, std::string> reasons;
    for (const std::vector<SkippedSample>& part : {data_.bad, state_->task().source.skipped()})
      for (const SkippedSample& bad : part) reasons[bad.name] = bad.reason;
    if (reasons.empty() || !data_.train.photos) return 0;
    std::string text = "path,reason\n";
    for (const auto& [path, reason] : reasons)
      text += fmt::format("{},{}\n", csv_field(path), csv_field(reason));
    if (text != bad_images_text_) write_file("train", folder_.bad_images(), text);
    bad_images_text_ = text;
    return reasons.size();
  }

  void write_events(const EpochRecord& record) {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::string& validated_on = data_.validated_on;
    events_->scalar("train/loss", record.epoch, record.train_loss, now);
    events_->scalar("train/accuracy", record.epoch, record.train_accuracy, now);
    events_->scalar(fmt::format("{}/loss", validated_on), record.epoch, record.val_loss, now);
    events_->scalar(fmt::format("{}/accuracy", validated_on), record.epoch, record.val_accuracy, now);
    events_->scalar("learning_rate", record.epoch, record.learning_rate, now);
  }

  // ---- after the last epoch

  double elapsed_seconds() const { return seconds_before_ + run_watch_.elapsed_ms() / 1000; }

  TrainResult make_result(int signal) const {
    return {.folder = folder_.path,
            .stopped_by = signal,
            .epochs = position_.records,
            .best_epoch = position_.best() ? position_.best()->epoch : 0,
            .tested_on = data_.tested_on,
            .seconds = elapsed_seconds()};
  }

  Evaluation test_best() {
    if (best_evaluation_) return *best_evaluation_;
    const Model best = load_model(folder_.best());
    best.module->to(state_->task().source.device());
    return traced_evaluation(
        [&] { return evaluate(*best.module, data_.test, options_.loss, state_->task().input); });
  }

  TrainResult finish() {
    if (changed_ && !position_.records.empty()) write_state();
    TrainResult result = make_result(0);
    if (position_.epoch > 0 && session_seconds_ == 0) result.seconds = position_.total_seconds;
    const bool use_best = data_.held_out || data_.train.photos;
    const Evaluation tested = use_best ? test_best() : traced_evaluation([&] { return evaluator_->run(); });
    result.test_accuracy = tested.accuracy;
    result.test_loss = tested.loss;
    const TrainingReport report = run_report({.options = options_,
                                              .data = data_,
                                              .result = result,
                                              .tested = tested,
                                              .engine = state_->engine().description(),
                                              .augmentation = state_->task().source.description(),
                                              .parameters = state_->model().parameters(),
                                              .command = run_.command});
    write_file("train", folder_.report(), training_page(report));
    const auto bad = static_cast<std::int64_t>(write_bad_images());
    if (bad > 0)
      log(fmt::format("Left out: {} photograph{} that could not be read, listed in {}", format_count(bad),
                      bad == 1 ? "" : "s", folder_.bad_images().string()));
    return result;
  }

  // ---- the trace

  Timeline* timeline() { return timeline_ ? &*timeline_ : nullptr; }

  // Ends the current span of the trainer, on the GPU too.
  void end_span() {
    if (!timeline_) return;
    timeline_->end();
    timeline_->collect();
  }

  void write_trace() {
    if (!timeline_) return;
    write_file("train", run_.trace, timeline_->to_text());
    log(fmt::format("Trace: {}, {} spans{}; open it in chrome://tracing or ui.perfetto.dev",
                    run_.trace.string(), format_count(static_cast<std::int64_t>(timeline_->size())),
                    timeline_->stopped() ? " (later ones were dropped)" : ""));
  }

  TrainOptions options_;
  const RunOptions& run_;
  const TrainCallbacks& callbacks_;
  TrainingData data_;
  std::optional<Timeline> timeline_;  // outlives the source
  std::optional<TrainingState> state_;
  std::optional<Evaluator> evaluator_;  // on the validation set
  RunFolder folder_;
  RunPosition position_;
  std::optional<EventFile> events_;
  std::string bad_images_text_;  // last written content of bad-images.csv
  std::int64_t chunk_steps_ = 1;
  std::int64_t session_samples_ = 0;  // since the start or resume
  double session_seconds_ = 0;        // training time since then
  double seconds_before_ = 0;         // duration of the run before it was resumed
  Stopwatch run_watch_, save_watch_;  // since the start or resume; since the last save
  std::int64_t model_bytes_ = 0;
  bool changed_ = true;  // since the last checkpoint
  double save_ms_ = 0;   // duration of the last save
  struct PendingBest {   // a better model than best.safetensors, not written yet
    NamedTensors weights;
    ModelInfo info;
  };
  std::optional<PendingBest> pending_best_;
  // The best epoch's evaluation, if the validation photographs are also the test set; it saves evaluating
  // again. Empty if that epoch was before a resume.
  std::optional<Evaluation> best_evaluation_;
};

}  // namespace

TrainResult train(const TrainOptions& options, const RunOptions& run, const TrainCallbacks& callbacks) {
  return Trainer(options, run, callbacks).train();
}

}  // namespace tandem
