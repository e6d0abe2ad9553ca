// The parts of a run beside its epochs: options that are measured before the first, what is fitted to the
// validation images after the last, and what the run writes for those who watch it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/files/safetensors.h"
#include "tandem/files/toml.h"
#include "tandem/image/save_image.h"
#include "tandem/report/trace_view.h"
#include "tandem/text/format_number.h"
#include "tandem/train/batch_sheet.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/measured_options.h"
#include "tandem/train/training_run.h"

namespace tandem {
namespace {

// The options of the run in a folder, if it has a configuration with all of them as numbers.
void use_stored(FitOptions& options, const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const TomlTable config = parse_toml(read_file("train", file, 1 << 20), file.string());
  const TomlEntry* const rate = config.find("lr");
  const TomlEntry* const size = config.find("batch_size");
  if (options.learning_rate == 0 && rate && std::holds_alternative<double>(rate->value))
    options.learning_rate = std::get<double>(rate->value);
  if (options.batch_size == 0 && size && std::holds_alternative<std::int64_t>(size->value))
    options.batch_size = std::get<std::int64_t>(size->value);
}

RankTrace own_trace(const Timeline& timeline) {
  const std::string lanes = trace_lanes("", timeline.events(timeline.start_ns()));
  return {.text = timeline.to_text(),
          .view = trace_view({&lanes, 1}, !timeline.stopped()),
          .bars = timeline.size(),
          .stopped = timeline.stopped()};
}

}  // namespace

// The device, and the learning rate and the batch size where they are not given: those of the run that is
// resumed, or what the first rank measures.
void TrainingRun::measure_options() {
  if (options_.resume) use_stored(options_, RunFolder{options_.run_folder}.config());
  const bool has_rate = options_.learning_rate > 0, has_size = options_.batch_size > 0;
  if (!has_rate) options_.learning_rate = FitOptions().learning_rate;
  if (!has_size) options_.batch_size = std::max(FitOptions().batch_size, options_.shards);
  choose_device();
  if (!options_.has_steps()) return;
  if (!has_size) {
    BatchSizeTest test;
    if (is_first()) test = find_batch_size(options_, data_.train, setup_.input, model_);
    group_.broadcast(std::as_writable_bytes(std::span(&test.chosen, 1)), 0);
    options_.batch_size = test.chosen;
    log(fmt::format("Batch size: {} ({})", test.chosen, test.reason));
  }
  if (has_rate) return;
  RangeTest test;
  if (is_first()) test = find_learning_rate(options_, data_.train, setup_.input, model_);
  group_.broadcast(std::as_writable_bytes(std::span(&test.chosen, 1)), 0);
  options_.learning_rate = test.chosen;
  range_test_ = std::move(test);
  log(fmt::format("Learning rate: {:.3g}, a sixth of that with the lowest loss of a range test",
                  options_.learning_rate));
}

// Fits temperature and threshold of the kept model to the validation images, and adds them to its file.
Evaluation TrainingRun::fit_decision(const Evaluation& tested) {
  const Evaluation validated = data_.held_out ? evaluator_->run() : tested;
  const std::vector<std::int32_t> fitted_to = data_.validation.labels.to_vector<std::int32_t>();
  const std::vector<std::int32_t> labels = data_.test.labels.to_vector<std::int32_t>();
  setup_.decision =
      tandem::fit_decision(validated, fitted_to, options_.calibrate, options_.threshold, options_.loss);
  if (options_.calibrate) {
    calibration_ = measure_calibration(tested, labels, setup_.decision);
    calibration_->fitted_on = data_.validated_on;
    calibration_->fitted_count = std::ssize(fitted_to);
    calibration_->same_images = !data_.held_out;
  }
  if (is_first())
    save_model(folder_.best(), read_safetensors(folder_.best()).tensors, model_info(setup_, *kept_epoch()));
  return apply_decision(tested, labels, setup_.decision, options_.loss);
}

// For people only: no room on the disk, or images that cannot be read, do not end the run. A run that is
// resumed has it. Balanced classes come in an order that a sheet does not know.
void TrainingRun::write_batch_sheet() noexcept {
  constexpr int quality = 90;
  try {
    if (!options_.has_steps() || options_.balanced_sampling ||
        std::filesystem::is_regular_file(folder_.batch_sheet()))
      return;
    const Image sheet = batch_sheet(
        data_.train, options_,
        {.count = std::min<std::int64_t>(24, options_.batch_size), .columns = 8, .photo_cell = 128});
    const std::vector<std::uint8_t> bytes = encode_jpeg(sheet, quality);
    write_file("train", folder_.batch_sheet(), std::string(bytes.begin(), bytes.end()));
  } catch (...) {
  }
}

void TrainingRun::write_trace() {
  if (!setup_.timeline) return;
  const Timeline& timeline = *setup_.timeline;
  const RankTrace trace = timed_ ? gather_trace(*setup_.group, timeline, clock_offset_) : own_trace(timeline);
  if (!is_first()) return;
  write_file("train", options_.trace, trace.text);
  write_file("train", folder_.timeline(), trace.view);
  log(fmt::format("Trace: {}, {} spans{}{}; open it in chrome://tracing or ui.perfetto.dev",
                  options_.trace.string(), format_count(static_cast<std::int64_t>(trace.bars)),
                  timed_ ? fmt::format(" of {} ranks", group_.place().size) : "",
                  trace.stopped ? " (later ones were dropped)" : ""));
}

void TrainingRun::write_status(RunState state, const TrainResult* result, const std::string& message) {
  if (!run_log_) return;
  RunStatus status{.state = state,
                   .message = message,
                   .device = options_.device->to_string(),
                   .engine = engine_description(),
                   .validated_on = data_.validated_on,
                   .epochs = options_.epochs,
                   .steps_per_epoch = batches().steps(),
                   .samples_per_epoch = batches().positions(),
                   .test_accuracy = {},
                   .tested_on = data_.tested_on,
                   .warnings = warnings_};
  if (result && std::isfinite(result->test_accuracy)) status.test_accuracy = result->test_accuracy;
  if (!not_read_.empty()) status.warnings.push_back(not_read_);
  run_log_->write_status(status);
}

// A second failure, such as a full disk, does not hide the first.
void TrainingRun::write_failure(const std::string& message) noexcept {
  try {
    if (state_) write_status(RunState::failed, nullptr, message);
  } catch (...) {
  }
}

}  // namespace tandem
