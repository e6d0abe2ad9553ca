#include "tandem/report/training_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/report/decision_sections.h"
#include "tandem/report/facts_json.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;  // keeps the keys in reading order

// The figures of an epoch, by their keys, which are the columns of log.csv.
struct EpochField {
  const char* key;
  double EpochRecord::*member;
};
constexpr EpochField epoch_fields[] = {
    {"train_loss", &EpochRecord::train_loss},
    {"train_accuracy", &EpochRecord::train_accuracy},
    {"val_loss", &EpochRecord::val_loss},
    {"val_accuracy", &EpochRecord::val_accuracy},
    {"learning_rate", &EpochRecord::learning_rate},
    {"seconds", &EpochRecord::seconds},
    {"samples_per_second", &EpochRecord::samples_per_second},
    {"waited_seconds", &EpochRecord::waited_seconds},
    {"exchange_seconds", &EpochRecord::exchange_seconds},
};

struct ReportField {
  const char* key;
  double TrainingReport::*member;
};
constexpr ReportField report_fields[] = {{"test_accuracy", &TrainingReport::test_accuracy},
                                         {"test_loss", &TrainingReport::test_loss},
                                         {"fp32_accuracy", &TrainingReport::fp32_accuracy},
                                         {"total_seconds", &TrainingReport::total_seconds}};

void set(Json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}

Json epoch_json(const EpochRecord& record) {
  Json object{{"epoch", record.epoch}};
  for (const EpochField& field : epoch_fields) set(object, field.key, record.*field.member);
  if (record.val_count > 0) object["val_images"] = record.val_count;
  for (const NamedFigure& metric : record.metrics) set(object["metrics"], metric.name.c_str(), metric.value);
  return object;
}

EpochRecord parse_epoch(const Json& object) {
  EpochRecord record;
  record.epoch = object.at("epoch").get<int>();
  for (const EpochField& field : epoch_fields) record.*field.member = object.value(field.key, not_measured);
  record.val_count = object.value("val_images", std::int64_t{0});
  if (const auto metrics = object.find("metrics"); metrics != object.end() && metrics->is_object())
    for (const auto& [name, value] : metrics->items()) record.metrics.push_back({name, value.get<double>()});
  return record;
}

Json confusion_json(const TrainingReport& report) {
  expect(report.confusion.size() % std::max<std::size_t>(report.classes.size(), 1) == 0);
  Json rows = Json::array();
  const auto classes = static_cast<std::ptrdiff_t>(report.classes.size());
  for (auto row = report.confusion.begin(); row != report.confusion.end(); row += classes)
    rows.push_back(std::vector(row, row + classes));
  return rows;
}

Json folds_json(const std::vector<FoldRecord>& folds) {
  const FoldSummary summary = summarize(folds);
  Json object{{"mean_accuracy", summary.mean}};
  set(object, "accuracy_deviation", summary.deviation);
  object["folds"] = Json::array();
  for (const FoldRecord& record : folds) {
    Json row{{"fold", record.fold},
             {"training_images", record.training_images},
             {"images", record.images},
             {"correct", record.correct},
             {"accuracy", record.accuracy()}};
    set(row, "loss", record.loss);
    set(row, "seconds", record.seconds);
    object["folds"].push_back(std::move(row));
  }
  return object;
}

std::vector<FoldRecord> parse_folds(const Json& rows) {
  std::vector<FoldRecord> folds;
  for (const Json& row : rows)
    folds.push_back({.fold = row.at("fold").get<int>(),
                     .folds = static_cast<int>(rows.size()),
                     .training_images = row.at("training_images").get<std::int64_t>(),
                     .images = row.at("images").get<std::int64_t>(),
                     .correct = row.at("correct").get<std::int64_t>(),
                     .loss = row.value("loss", not_measured),
                     .seconds = row.value("seconds", not_measured)});
  return folds;
}

TrainingReport parse_report(const Json& object) {
  TrainingReport report;
  report.title = object.at("title").get<std::string>();
  report.command = object.at("command").get<std::string>();
  report.facts = parse_facts(object.at("facts"));
  report.provenance = parse_facts(object.at("provenance"));
  report.val_name = object.at("val_name").get<std::string>();
  report.test_name = object.at("test_name").get<std::string>();
  report.chosen_on = object.at("chosen_on").get<std::string>();
  report.best_epoch = object.at("kept_epoch").get<int>();
  for (const ReportField& field : report_fields) report.*field.member = object.value(field.key, not_measured);
  report.warnings = object.at("warnings").get<std::vector<std::string>>();
  report.classes = object.at("classes").get<std::vector<std::string>>();
  for (const Json& row : object.at("confusion"))
    for (const Json& count : row) report.confusion.push_back(count.get<std::int64_t>());
  for (const Json& epoch : object.at("epochs")) report.epochs.push_back(parse_epoch(epoch));
  if (const auto found = object.find("cross_validation"); found != object.end())
    report.folds = parse_folds(found->at("folds"));
  return report;
}

}  // namespace

std::string to_json_text(const TrainingReport& report) {
  Json object{{"title", report.title},
              {"command", report.command},
              {"facts", facts_json(report.facts)},
              {"provenance", facts_json(report.provenance)},
              {"val_name", report.val_name},
              {"test_name", report.test_name},
              {"chosen_on", report.chosen_on},
              {"kept_epoch", report.best_epoch}};
  for (const ReportField& field : report_fields) set(object, field.key, report.*field.member);
  if (!report.confusion.empty())
    object["test_images"] =
        std::accumulate(report.confusion.begin(), report.confusion.end(), std::int64_t{0});
  object["warnings"] = report.warnings;
  object["classes"] = report.classes;
  object["confusion"] = confusion_json(report);
  Json after = Json::object();
  if (!report.folds.empty()) after["cross_validation"] = folds_json(report.folds);
  if (report.range_test)
    after["range_test"] = {{"chosen", report.range_test->chosen},
                           {"rates", report.range_test->rates},
                           {"losses", report.range_test->losses}};
  if (report.curves) after["curves"] = curves_json(*report.curves);
  if (report.calibration) after["calibration"] = calibration_json(*report.calibration);

  // On one line: a matrix has many counts. The epochs become text one by one: there may be thousands, and
  // every save writes all of them.
  const auto text_of = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = text_of(object);
  text.back() = ',';
  text += "\"epochs\":[";
  for (const EpochRecord& record : report.epochs) {
    if (&record != report.epochs.data()) text += ',';
    text += text_of(epoch_json(record));
  }
  text += ']';
  if (!after.empty())
    text += ',' + text_of(after).substr(1);
  else
    text += '}';
  return text + '\n';
}

TrainingReport parse_training_report(std::string_view text, const std::string& name) {
  TrainingReport report;
  try {
    report = parse_report(Json::parse(text));
  } catch (const Json::exception&) {
    fail("[compare] {}: expected the report of a training run, got something else", one_line(name));
  }
  check(report.confusion.empty() || report.confusion.size() == report.classes.size() * report.classes.size(),
        "[compare] {}: expected a confusion matrix of {} classes, got {} counts", one_line(name),
        report.classes.size(), report.confusion.size());
  for (const std::int64_t count : report.confusion)
    check(count >= 0, "[compare] {}: expected counts of images, got {}", one_line(name), count);
  return report;
}

}  // namespace tandem
