#include "tandem/train/run_log.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <utility>

#include "tandem/core/write_file.h"
#include "tandem/report/csv.h"
#include "tandem/report/training_page.h"

namespace tandem {

RunLog::RunLog(const RunFolder& folder, std::string validated_on, const std::vector<std::string>& metrics,
               std::span<const EpochRecord> finished)
    : folder_(folder),
      validated_on_(std::move(validated_on)),
      events_(folder.events(), std::ssize(finished)) {
  std::string text = epoch_csv_header(metrics);
  for (const EpochRecord& record : finished) text += epoch_csv_row(record);
  write_file("train", folder_.log(), text);
}

void RunLog::add_epoch(const EpochRecord& record) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto add = [&](const std::string& tag, double value) {
    events_.scalar(tag, record.epoch, value, now);
  };
  add("train/loss", record.train_loss);
  add("train/accuracy", record.train_accuracy);
  add(validated_on_ + "/loss", record.val_loss);
  add(validated_on_ + "/accuracy", record.val_accuracy);
  for (const NamedFigure& metric : record.metrics) add(validated_on_ + "/" + metric.name, metric.value);
  add("learning_rate", record.learning_rate);
  append_file("train", folder_.log(), epoch_csv_row(record));
}

std::int64_t RunLog::write_bad_images(std::span<const SkippedSample> bad) {
  std::map<std::string, std::string> reasons;
  for (const SkippedSample& sample : bad) reasons[sample.name] = sample.reason;
  if (reasons.empty()) return 0;
  std::string text = "path,reason\n";
  for (const auto& [path, reason] : reasons)
    text += fmt::format("{},{}\n", csv_field(path), csv_field(reason));
  if (text != bad_images_text_) write_file("train", folder_.bad_images(), text);
  bad_images_text_ = text;
  return std::ssize(reasons);
}

void RunLog::write_report(const TrainingReport& report) const {
  write_file("train", folder_.report(), training_page(report));
}

}  // namespace tandem
