#include "tandem/train/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <span>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/message_of.h"
#include "tandem/core/simd.h"
#include "tandem/core/write_file.h"
#include "tandem/files/safetensors.h"
#include "tandem/text/format_number.h"
#include "tandem/train/evaluate_views.h"
#include "tandem/train/option_facts.h"
#include "tandem/train/rank_data.h"
#include "tandem/train/rank_device.h"
#include "tandem/train/ranks.h"
#include "tandem/train/run_report.h"
#include "tandem/train/run_warnings.h"

namespace tandem {
namespace {

constexpr double chunk_ms = 150;  // between polling signals and reporting progress

std::vector<std::string> names_of(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name);
  return names;
}

bool is_frozen(const NamedTensor& parameter) {
  return !parameter.tensor.requires_grad();
}

}  // namespace

TrainingRun::TrainingRun(RunSetup setup, Module& model, const FitCallbacks& callbacks)
    : setup_(std::move(setup)),
      model_(model),
      callbacks_(callbacks),
      alone_(setup_.group ? nullptr : solo_group()),
      timed_(setup_.group && setup_.group->place().size > 1
                 ? std::make_unique<TimedGroup>(*setup_.group, setup_.timeline.get())
                 : nullptr),
      group_(timed_         ? *timed_
             : setup_.group ? *setup_.group
                            : *alone_) {}

TrainResult TrainingRun::run() {
  try {
    prepare();
    const TrainResult result = run_epochs();
    write_status(result.stopped_by != 0 ? RunState::stopped : RunState::finished, &result);
    group_.barrier();  // a launcher that sees a rank end with a status may kill the first, which writes files
    return result;
  } catch (const std::exception& error) {
    write_failure(message_of(error));
    throw;
  }
}

void TrainingRun::log(const std::string& line) const {
  if (callbacks_.on_message && is_first()) callbacks_.on_message(line);
}

void TrainingRun::report(const ProgressState& state) const {
  if (callbacks_.on_progress && is_first()) callbacks_.on_progress(state);
}

// ---- before the first step

void TrainingRun::prepare() {
  check(!options_.fit_head || dynamic_cast<BackboneModel*>(&model_) != nullptr,
        "[train] expected a model with a backbone and a last layer, such as resnet18, for fit_head, got {}",
        options_.model_name);
  check_threshold(options_.threshold, data_);
  Timeline* const timeline = setup_.timeline.get();
  if (!options_.class_weights.empty())
    class_weights_ = options_.class_weights.values(data_.train.classes, count_classes(*data_.train.dataset));
  check(options_.unfreeze_at == 0 || std::ranges::any_of(model_.parameters(), is_frozen),
        "[train] unfreeze_at requires frozen parameters, got none");
  check_feature_precision();
  measure_options();
  const Device device = *options_.device;
  make_state();
  options_.precision = state_->task().precision;
  FitOptions of_first = options_;  // the same for all ranks
  of_first.device = first_device_;
  const TomlTable config = setup_.config(of_first);
  data_list_ = list_data(data_);
  data_digest_ = data_list_.digest();
  check_ranks_agree(group_, {{"options", to_toml(config)},
                             {"the run to resume", options_.resume ? options_.run_folder.string() : "none"},
                             {"SIMD", std::string(name_of(simd_level()))},
                             {"comm", options_.exchange_through_cpu ? "host" : "auto"},
                             {"trace", options_.trace.empty() ? "no" : "yes"}});
  if (group_.place().size > 1) check_same_data(group_, data_list_, image_fingerprints(data_));
  if (timed_ && timeline) clock_offset_ = measure_clock_offset(*setup_.group, monotonic_ns);
  open_folder();
  checkpoints_.emplace(folder_, config, model_, options_.save_every_seconds, timeline);
  if (options_.resume) resume(config);
  compute_features_in_low_precision();
  log("Engine: " + engine_description());
  if (options_.fit_head && position_.epoch == 0) log("Epoch 1 fits the last layer by logistic regression");
  if (options_.has_steps() && !options_.transform.empty())
    log(fmt::format(
        "Augmentation: {}; {}{}", options_.transform.to_string(), state_->task().source.description(),
        options_.transform.cpu_only() && device.is_cuda() ? ": it has an operation of your own" : ""));
  const std::vector<Fact> facts = option_facts(options_, data_.train.classes, class_weights_);
  for (const std::string& line : fact_lines(facts)) log(line);
  setup_.facts.insert(setup_.facts.begin(), facts.begin(), facts.end());
  log("Run folder: " + folder_.path.string());
  data_.validation = data_.validation.to(device);
  evaluator_.emplace(model_, data_.validation, options_.loss, setup_.input, options_.loss_function,
                     options_.capture_graphs, &group_);
  if (is_first()) write_setup(config);
  list_bad_images();
  unlogged_.sums_before = position_.sums;
  seconds_before_ = position_.total_seconds;
  warn(data_warnings(data_));
  if (options_.threshold.automatic) warn(threshold_warnings(data_));
  warn(order_warnings(data_, options_.shuffle));
  write_status(RunState::running);
  run_watch_ = {};
}

// With an optimizer of the parameters that are trained now.
void TrainingRun::make_state() {
  state_.emplace(model_, options_, data_.train, setup_.input, *options_.device,
                 is_first() ? callbacks_.on_message : MessageFunction(), setup_.timeline.get(), &group_);
}

// In a new state. The averages and the list of files that could not be read go on.
void TrainingRun::unfreeze() {
  NamedTensors averages;
  if (const WeightAverage* const average = state_->task().average)
    for (const auto& [name, tensor] : average->state()) averages.push_back({name, tensor.clone()});
  const std::vector<SkippedSample> skipped = state_->task().source.skipped();
  data_.bad.insert(data_.bad.end(), skipped.begin(), skipped.end());
  model_.unfreeze();
  make_state();
  if (state_->task().average) state_->task().average->load_state(averages);
  log(fmt::format("All layers are trained from epoch {} on", options_.unfreeze_at));
}

void TrainingRun::choose_device() {
  const RankDevice chosen = choose_rank_device(group_, options_, [&] {
    const TimelineSpan span(setup_.timeline.get(), "choose device", {});
    return tandem::choose_device(options_, data_.train, setup_.input, model_);
  });
  options_.device = chosen.choice.device;
  options_.augment_on = chosen.choice.augment_on;
  options_.workers = chosen.choice.workers;
  first_device_ = chosen.first;
  log(fmt::format("Device: {} ({})", options_.device->to_string(), chosen.choice.reason));
}

void TrainingRun::open_folder() {
  if (is_first()) {
    folder_ = make_run_folder(options_.run_folder, options_.data_name, options_.model_name);
    // Folds have written to it before.
    lock_ = lock_run_folder(folder_, options_.resume || setup_.cross_validation);
  }
  folder_.path = broadcast_text(group_, folder_.path.string());
}

void TrainingRun::write_setup(const TomlTable& config) {
  write_file("train", folder_.config(), to_toml(config));
  write_file("train", folder_.data(), data_list_.to_text());
  run_log_.emplace(folder_, data_.validated_on, names_of(options_.metrics), options_.shards > 1,
                   position_.records, position_.epoch * batches().steps() + position_.step);
  system_monitor_.emplace(*options_.device);
  write_batch_sheet();
}

// With the precision of the products where the device has several, the shards and the ranks.
std::string TrainingRun::engine_description() {
  const MatmulPrecision precision = state_->task().precision;
  const char* const products = !options_.device->is_cuda()          ? ""
                               : precision == MatmulPrecision::tf32 ? ", products in TF32"
                               : precision == MatmulPrecision::bf16 ? ", products in bf16"
                                                                    : ", products in fp32";
  const int ranks = group_.place().size;
  return state_->engine().description() + products +
         (options_.shards > 1 ? fmt::format(", {} shards", options_.shards) : "") +
         (ranks > 1 ? fmt::format(" on {} ranks", ranks) : "");
}

void TrainingRun::resume(const TomlTable& config) {
  std::optional<TensorFile> file;
  bool changed = false;
  if (is_first()) {
    if (std::optional<NewestCheckpoint> found = read_run_checkpoint(folder_)) {
      if (!found->problem.empty()) {
        warn({fmt::format("{}: the run goes on from {}", found->problem, folder_.previous().string())});
        checkpoints_->set_last_damaged();
      }
      file = std::move(found->file);
    }
    changed = file && is_data_changed(*file);
  }
  file = broadcast_file(group_, std::move(file));
  group_.broadcast(std::as_writable_bytes(std::span(&changed, 1)), 0);
  if (file) {
    if (options_.unfreeze_at > 0 && finished_epochs(*file, folder_) + 1 >= options_.unfreeze_at) unfreeze();
    position_ = restore_checkpoint(*file, folder_, with_accepted_shards(config, *file), *state_,
                                   names_of(options_.metrics));
    for (EpochRecord& record : position_.records) record.val_count = data_.validation.count();
    if (const auto command = file->metadata.find("tandem.command"); command != file->metadata.end())
      options_.command = command->second;  // stored in the model file, which does not tell a resumed run
    checkpoints_->set_changed(false);
    if (changed && position_.step > 0) restart_epoch();
    check(position_.step < batches().steps(), "[train] {}: its position is not valid for this run",
          folder_.checkpoint().string());
    log(fmt::format("Resuming {} at epoch {}, step {}", folder_.path.string(), position_.epoch + 1,
                    position_.step + 1));
  } else {
    log(fmt::format("No checkpoint in {} yet: starting from the beginning", folder_.path.string()));
  }
}

// Without the number of shards, if another one than the checkpoint's is accepted.
TomlTable TrainingRun::with_accepted_shards(TomlTable config, const TensorFile& checkpoint) {
  if (!options_.accept_changed_shards) return config;
  const TomlTable saved = parse_toml(checkpoint.metadata.at("tandem.config"), folder_.checkpoint().string());
  const TomlEntry* const before = saved.find("shards");
  const std::string shards = before ? plain_text(before->value) : "1";
  if (shards != std::to_string(options_.shards))
    warn({fmt::format("batches have {} shards from here on, {} before: the run is the same to rounding only",
                      options_.shards, shards)});
  std::erase_if(config.entries, [](const TomlEntry& entry) { return entry.key == "shards"; });
  return config;
}

// Throws Error if the data changed and that is not accepted.
bool TrainingRun::is_data_changed(const TensorFile& checkpoint) const {
  const std::string difference = data_difference(checkpoint, folder_.data(), data_list_);
  if (difference.empty()) return false;
  check(options_.accept_changed_data, "[train] {}: the data changed since the run was saved: {}",
        folder_.path.string(), difference);
  log(fmt::format("Warning: the data changed since the run was saved: {}", difference));
  return true;
}

// With other images the position within the epoch has no meaning.
void TrainingRun::restart_epoch() {
  position_.step = 0;
  position_.sums = {};
  position_.epoch_seconds = position_.waited_seconds = position_.exchange_seconds = 0;
  log(fmt::format("Epoch {} starts again", position_.epoch + 1));
}

// ---- an epoch

TrainResult TrainingRun::run_epochs() {
  if (!setup_.fold_of.empty()) cross_validate_head();
  while (position_.epoch < options_.epochs && !should_stop_early()) {
    if (options_.fit_head && position_.epoch == 0)
      run_head_epoch();
    else if (const int signal = run_epoch(); signal != 0) {
      const TrainResult result = make_result(signal);
      write_trace();
      if (!result.epochs.empty() && is_first()) write_report(result, nullptr);
      return result;
    }
    finish_epoch();
  }
  return finish();
}

// The epoch whose model is kept: the best on the validation set, or the last if nothing chooses.
const EpochRecord* TrainingRun::kept_epoch() const {
  if (data_.chooses_model || position_.records.empty()) return position_.best();
  return &position_.records.back();
}

bool TrainingRun::should_stop_early() const {
  return options_.early_stopping > 0 && position_.best() != nullptr &&
         position_.epoch - position_.best()->epoch >= options_.early_stopping;
}

// Runs the rest of the epoch. Returns the signal that ended it early, or 0.
int TrainingRun::run_epoch() {
  while (position_.step < batches().steps()) {
    const bool requested = callbacks_.save_requested && callbacks_.save_requested();
    const Control agreed = group_.agree({.stop_signal = callbacks_.stop_signal ? callbacks_.stop_signal() : 0,
                                         .save = requested || (is_first() && checkpoints_->is_due()),
                                         .steps = chunk_steps_});
    if (agreed.stop_signal != 0 || agreed.save) save();
    if (agreed.stop_signal != 0) return agreed.stop_signal;
    run_chunk(agreed.steps);
  }
  return 0;
}

// Runs as many steps as take about chunk_ms. Their number does not affect the result.
void TrainingRun::run_chunk(std::int64_t steps) {
  const std::int64_t stride = state_->engine().stride();
  const std::int64_t end = (position_.step + steps + stride - 1) / stride * stride;
  const std::int64_t count = std::min(end, batches().steps()) - position_.step;
  const BatchSource& source = state_->task().source;
  const double waited_ms = source.waited_ms(), exchange_ms = timed_ ? timed_->waited_ms() : 0;
  const Stopwatch watch;
  const StepSums before = position_.sums;
  state_->engine().add_steps(position_.epoch, position_.step, count, position_.sums);
  const StepSums sums = position_.sums - before;
  const double ms = watch.elapsed_ms();
  end_span();
  if (!std::isfinite(position_.sums.loss))
    fail_diverged(count == 1 ? fmt::format("at step {}", position_.step + 1)
                             : fmt::format("in steps {} to {}", position_.step + 1, position_.step + count));
  position_.step += count;
  position_.epoch_seconds += ms / 1000;
  position_.waited_seconds += (source.waited_ms() - waited_ms) / 1000;
  if (timed_) own_exchange_seconds_ += (timed_->waited_ms() - exchange_ms) / 1000;
  unlogged_.seconds += ms / 1000;
  unlogged_.waited_seconds += (source.waited_ms() - waited_ms) / 1000;
  checkpoints_->set_changed(true);
  const double wanted = chunk_ms * static_cast<double>(count) / std::max(ms, 1e-3);
  chunk_steps_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, 8 * chunk_steps_);
  session_samples_ += sums.samples;
  session_seconds_ += ms / 1000;
  log_steps();
  report({.epoch = static_cast<int>(position_.epoch) + 1,
          .epochs = static_cast<int>(options_.epochs),
          .position = position_.sums.samples,
          .total = batches().positions(),
          .samples_per_second = static_cast<double>(session_samples_) / session_seconds_,
          .loss = position_.sums.loss / static_cast<double>(position_.sums.samples)});
}

// Of the last step; 0 before the first.
double TrainingRun::learning_rate() const {
  if (position_.step == 0) return 0;
  return learning_rate_at(state_->task().schedule, options_.learning_rate, position_.epoch,
                          position_.step - 1, batches().steps());
}

// A row for every second or so of training, and at the end of an epoch.
void TrainingRun::log_steps() {
  constexpr double row_seconds = 1;
  const bool is_end = position_.step == batches().steps();
  if (unlogged_.seconds < row_seconds && !is_end) return;
  const StepSums sums = position_.sums - unlogged_.sums_before;
  const auto samples = static_cast<double>(sums.samples);
  const double seconds = std::max(unlogged_.seconds, 1e-9);
  if (!run_log_) return;
  StepRecord record{.step = position_.epoch * batches().steps() + position_.step,
                    .epoch = position_.epoch + 1,
                    .loss = sums.loss / samples,
                    .learning_rate = learning_rate(),
                    .samples_per_second = samples / seconds,
                    .waited_share = unlogged_.waited_seconds / seconds};
  system_monitor_->measure(record);
  run_log_->add_steps(record);
  unlogged_ = {};
  if (!is_end) unlogged_.sums_before = position_.sums;
}

void TrainingRun::fail_diverged(const std::string& where) {
  const std::string origin = describe_first(group_, state_->engine().first_not_finite());
  std::error_code ignored;
  fail_together(group_,
                fmt::format("[train] the loss is not finite {} of epoch {}{}: try a lower learning rate ({})",
                            where, position_.epoch + 1, origin,
                            std::filesystem::exists(folder_.checkpoint(), ignored)
                                ? "the last good checkpoint is " + folder_.checkpoint().string()
                                : "no checkpoint was saved before"));
}

// Weights can become NaN in an update whose loss was still finite.
void TrainingRun::store_finite() {
  state_->engine().store();
  check_same_values(group_, model_.state_dict());
  if (!is_finite(*state_)) fail_diverged(fmt::format("after step {}", position_.step));
}

// Adds the time that the ranks have spent in the exchange since the last call, on average. What GPUs exchange
// by NCCL is not measured.
void TrainingRun::add_exchange_time() {
  if (!timed_) return;
  const double mine = std::exchange(own_exchange_seconds_, 0);
  std::vector<double> all(group_.places().size());
  group_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const bool by_nccl = options_.device->is_cuda() && !options_.exchange_through_cpu;
  position_.exchange_seconds +=
      by_nccl ? not_measured : std::reduce(all.begin(), all.end()) / static_cast<double>(all.size());
}

void TrainingRun::save() {
  checkpoints_->postpone();
  add_exchange_time();
  store_finite();  // also without changes: all ranks compare weights, and only the first knows of changes
  if (is_first() && checkpoints_->has_changes()) write_checkpoint();
}

// Also rewrites the report, unless that took more than a small part of the time since the last.
void TrainingRun::write_checkpoint() {
  position_.total_seconds = elapsed_seconds();
  checkpoints_->write(*state_, position_, checkpoint_texts());
  constexpr double max_share = 0.05;
  if (!position_.records.empty() && since_report_.elapsed_ms() * max_share >= report_ms_)
    write_report(make_result(0), nullptr);
}

// Before the end, and after a signal, nothing was tested.
void TrainingRun::write_report(const TrainResult& result, const Evaluation* tested) {
  const Stopwatch watch;
  const bool folds = setup_.cross_validation.has_value();  // their mistakes are those of other models
  run_log_->write_report(run_report({.options = options_,
                                     .data = data_,
                                     .architecture = setup_.architecture,
                                     .facts = setup_.facts,
                                     .result = result,
                                     .tested = tested,
                                     .engine = engine_description(),
                                     .augmentation = state_->task().source.description(),
                                     .parameters = model_.parameters(),
                                     .model = {.module = folds ? nullptr : &model_, .input = setup_.input},
                                     .ranks = group_.places(),
                                     .range_test = range_test_,
                                     .calibration = calibration_}));
  report_ms_ = watch.elapsed_ms();
  since_report_ = {};
}

void TrainingRun::warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) log("Warning: " + warning);
  warnings_.insert(warnings_.end(), warnings.begin(), warnings.end());
  if (!warnings.empty()) write_status(RunState::running);
}

// With the model's metadata a checkpoint is also a model file.
CheckpointTexts TrainingRun::checkpoint_texts() const {
  EpochRecord last{.epoch = static_cast<int>(position_.epoch), .val_accuracy = 0};
  if (!position_.records.empty()) last = position_.records.back();
  CheckpointTexts texts = model_metadata(model_info(setup_, last));
  texts["tandem.data_digest"] = data_digest_;
  return texts;
}

Evaluation TrainingRun::validate() {
  if (setup_.cross_validation) return setup_.cross_validation->after_epoch(position_.epoch);
  return traced_evaluation([&] {
    const EvaluationObserver observer([&](std::int64_t done, std::int64_t images) {
      report({.phase = "Validation", .position = done, .total = images});
    });
    return evaluator_->run();
  });
}

void TrainingRun::finish_epoch() {
  add_exchange_time();
  store_finite();
  swap_average();
  const Evaluation validated = validate();
  const EpochRecord record = epoch_record(setup_, position_, validated, learning_rate());
  position_.records.push_back(record);
  ++position_.epoch;
  position_.step = 0;
  position_.sums = {};
  position_.epoch_seconds = 0;
  position_.waited_seconds = position_.exchange_seconds = 0;
  checkpoints_->set_changed(true);
  if (kept_epoch()->epoch == record.epoch) {
    if (!data_.held_out) best_evaluation_ = validated;
    if (is_first()) checkpoints_->keep_best(model_, model_info(setup_, record));
  }
  swap_average();
  list_bad_images();
  if (position_.epoch + 1 == options_.unfreeze_at) unfreeze();
  if (!is_first()) return;
  run_log_->add_epoch(record);
  if (checkpoints_->is_due_after_epoch()) write_checkpoint();
  if (callbacks_.on_epoch) callbacks_.on_epoch(record);
}

// The averaged weights are in the model while it is validated and kept.
void TrainingRun::swap_average() {
  if (state_->task().average) state_->task().average->swap(model_);
}

// Lists the files that were not read; says so when there are new ones.
void TrainingRun::list_bad_images() {
  const std::vector<SkippedSample> bad = gather_skipped(group_, files_not_read(data_, state_->task().source));
  if (!is_first() || !run_log_->write_bad_images(bad)) return;
  not_read_ = fmt::format("Not read: {}; listed in {}", count_skipped(bad), folder_.bad_images().string());
  log(not_read_);
  write_status(RunState::running);
}

// ---- after the last epoch

TrainResult TrainingRun::make_result(int signal) const {
  return {.folder = folder_.path,
          .stopped_by = signal,
          .epochs = position_.records,
          .best_epoch = kept_epoch() ? kept_epoch()->epoch : 0,
          .folds = setup_.cross_validation ? setup_.cross_validation->folds : std::vector<FoldRecord>(),
          .decision = setup_.decision,
          .test_count = data_.test.count(),
          .chosen_on = data_.chooses_model ? data_.validated_on : "",
          .warnings = warnings_,
          .tested_on = data_.tested_on,
          .seconds = elapsed_seconds() + (setup_.cross_validation ? setup_.cross_validation->seconds : 0)};
}

// The model then holds the best weights.
Evaluation TrainingRun::evaluate_best() {
  if (is_first()) {
    try {
      model_.load_state_dict(with_step_counters(read_safetensors(folder_.best()).tensors, model_));
    } catch (const Error& error) {
      fail("[train] {}: cannot load the best model: {}", folder_.best().string(), error.what());
    }
  }
  broadcast_weights(group_, model_);
  if (setup_.cross_validation) return setup_.cross_validation->evaluation;
  if (best_evaluation_ && options_.test_views == TestViews::one) return *best_evaluation_;
  return evaluate_test_images();
}

Evaluation TrainingRun::evaluate_test_images() {
  if (options_.test_views != TestViews::one)
    return traced_evaluation([&] {
      return evaluate_views(model_, data_.test.to(*options_.device), options_.output_kind(), setup_.input,
                            options_.test_views);
    });
  Evaluator evaluator(model_, data_.test, options_.loss, setup_.input, options_.loss_function, false,
                      &group_);
  return traced_evaluation([&] { return evaluator.run(); });
}

TrainResult TrainingRun::finish() {
  if (is_first() && checkpoints_->has_changes() && !position_.records.empty()) {
    position_.total_seconds = elapsed_seconds();
    checkpoints_->write(*state_, position_, checkpoint_texts());
  }
  if (kept_epoch())
    warn(result_warnings(data_, position_.records, *kept_epoch(),
                         options_.loss != LossKind::mse && !options_.loss_function, options_.calibrate));
  TrainResult result = make_result(0);
  if (position_.epoch > 0 && session_seconds_ == 0) result.seconds = position_.total_seconds;
  Evaluation tested = evaluate_best();
  best_evaluation_ = tested;
  if (options_.calibrate || !options_.threshold.empty()) tested = fit_decision(tested);
  result.decision = setup_.decision;
  result.test_accuracy = tested.accuracy;
  result.test_loss = tested.loss;
  if (options_.feature_precision != FeaturePrecision::automatic) compare_with_fp32(result, tested);
  write_trace();
  if (is_first()) write_report(result, &tested);
  if (is_first() && setup_.cross_validation)
    write_file("train", folder_.predictions(),
               cross_validation_csv(*setup_.cross_validation, data_, options_.loss));
  list_bad_images();
  return result;
}

// ---- the trace

// Runs an evaluation with a span on the timeline.
Evaluation TrainingRun::traced_evaluation(const std::function<Evaluation()>& compute) {
  if (setup_.timeline) setup_.timeline->begin("evaluate", {}, current_stream(state_->task().source.device()));
  const ExchangeName exchange("gather outputs");
  const Evaluation evaluation = compute();
  end_span();
  return evaluation;
}

// Ends the current span of the trainer, on the GPU too.
void TrainingRun::end_span() {
  if (!setup_.timeline) return;
  setup_.timeline->end();
  setup_.timeline->collect();
}

}  // namespace tandem
