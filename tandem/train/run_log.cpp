#include "tandem/train/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/report/csv.h"
#include "tandem/report/training_json.h"
#include "tandem/report/training_page.h"

namespace tandem {

namespace {

constexpr const char* steps_header =
    "step,epoch,loss,learning_rate,samples_per_second,waited_share,memory_mb,device_memory_mb\n";

// The rows of steps.csv up to that step. Those of older versions have fewer columns.
std::string kept_steps(const std::filesystem::path& path, std::int64_t last_step) {
  std::string text = steps_header, line;
  std::ifstream file(path);
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error != std::errc{} || step > last_step) break;
    const std::ptrdiff_t missing = 7 - std::ranges::count(line, ',');
    text += line + std::string(static_cast<std::size_t>(std::max<std::ptrdiff_t>(missing, 0)), ',') + "\n";
  }
  return text;
}

std::string megabytes(double value) {
  return std::isfinite(value) ? fmt::format("{:.1f}", value) : std::string();
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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
      step_events_(with_parent(folder.step_events()), finished_steps) {
  write_file("train", folder_.steps(), kept_steps(folder_.steps(), finished_steps));
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
  append_file("train", folder_.steps(),
              fmt::format("{},{},{},{},{:.1f},{:.4f},{},{}\n", record.step, record.epoch, record.loss,
                          record.learning_rate, record.samples_per_second, record.waited_share,
                          megabytes(record.memory_mb), megabytes(record.device_memory_mb)));
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
  write_file("train", folder_.status(), to_json_text(status));
}

void RunLog::write_report(const TrainingReport& report) const {
  write_file("train", folder_.report(), training_page(report));
  write_file("train", folder_.report_json(), to_json_text(report));
}

}  // namespace tandem
