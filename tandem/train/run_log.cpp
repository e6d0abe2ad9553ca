#include "tandem/train/run_log.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/files/toml.h"
#include "tandem/report/csv.h"
#include "tandem/report/training_json.h"
#include "tandem/report/training_page.h"

namespace tandem {

namespace {

// The lines of steps.csv up to that step, whose figures are added to `curves`. Those of older versions have
// fewer columns.
std::string kept_steps(const std::filesystem::path& path, std::int64_t last_step, StepCurves& curves) {
  std::string text = steps_csv_header(), line;
  std::ifstream file(path);
  NumberRows rows;
  if (std::getline(file, line)) rows.set(line);
  while (std::getline(file, line) && rows.set(line)) {
    const StepRecord record = step_record(rows);
    if (record.step == 0 || record.step > last_step) break;
    text += steps_csv_row(record);
    curves.add(record);
  }
  return text;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Empty if there is no such file.
std::string bytes_of(const std::filesystem::path& path) {
  constexpr std::uint64_t max_bytes = 16 << 20;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    return read_file("train", path, max_bytes);
  } catch (const Error&) {
    return {};
  }
}

// Empty for a file that is not a configuration.
std::vector<Fact> options_of(const std::filesystem::path& path) {
  std::vector<Fact> options;
  try {
    for (const TomlEntry& entry : parse_toml(bytes_of(path), path.string()).entries)
      options.push_back({entry.key, plain_text(entry.value)});
  } catch (const Error&) {
  }
  return options;
}

const std::filesystem::path& with_parent(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  check(!error, "[train] cannot create the folder {}: {}", path.parent_path().string(), error.message());
  return path;
}

}  // namespace

RunLog::RunLog(const RunFolder& folder, std::string validated_on, const std::vector<std::string>& metrics,
               bool has_shards, std::span<const EpochRecord> finished, std::int64_t finished_steps)
    : folder_(folder),
      validated_on_(std::move(validated_on)),
      has_shards_(has_shards),
      events_(folder.events(), std::ssize(finished)),
      step_events_(with_parent(folder.step_events()), finished_steps),
      step_curves_(max_page_buckets) {
  write_file("train", folder_.steps(), kept_steps(folder_.steps(), finished_steps, step_curves_));
  std::string text = epoch_csv_header(metrics, has_shards_);
  for (const EpochRecord& record : finished) text += epoch_csv_row(record, has_shards_);
  write_file("train", folder_.log(), text);
}

void RunLog::add_epoch(const EpochRecord& record) {
  const double now = seconds_since_1970();
  const auto add = [&](const std::string& tag, double value) {
    events_.scalar(tag, record.epoch, value, now);
  };
  add("train/loss", record.train_loss);
  add("train/accuracy", record.train_accuracy);
  add(validated_on_ + "/loss", record.val_loss);
  add(validated_on_ + "/accuracy", record.val_accuracy);
  for (const NamedFigure& metric : record.metrics) add(validated_on_ + "/" + metric.name, metric.value);
  add("learning_rate", record.learning_rate);
  append_file("train", folder_.log(), epoch_csv_row(record, has_shards_));
}

void RunLog::add_steps(const StepRecord& record) {
  const double now = seconds_since_1970();
  const auto add = [&](const char* tag, double value) { step_events_.scalar(tag, record.step, value, now); };
  add("step/loss", record.loss);
  add("step/learning_rate", record.learning_rate);
  add("step/samples_per_second", record.samples_per_second);
  add("step/waited_share", record.waited_share);
  append_file("train", folder_.steps(), steps_csv_row(record));
  step_curves_.add(record);
}

bool RunLog::write_bad_images(std::span<const SkippedSample> bad) {
  if (bad.empty()) return false;
  const std::string text = skipped_csv(bad);
  if (text == bad_images_text_) return false;
  write_file("train", folder_.bad_images(), text);
  bad_images_text_ = text;
  return true;
}

void RunLog::write_status(const RunStatus& status) const {
  if (status.state != RunState::running)  // a run that goes on rewrites the logs when it is resumed
    for (const std::filesystem::path& log :
         {folder_.log(), folder_.events(), folder_.steps(), folder_.step_events()})
      sync_path(log);
  write_file("train", folder_.status(), to_json_text(status));
}

void RunLog::write_report(TrainingReport report) const {
  report.steps = step_curves_;
  report.batch_sheet = bytes_of(folder_.batch_sheet());
  report.timeline = bytes_of(folder_.timeline());
  report.options = options_of(folder_.config());
  write_file("train", folder_.report(), training_page(report));
  write_file("train", folder_.report_json(), to_json_text(report));
}

}  // namespace tandem
