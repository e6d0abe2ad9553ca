// nlohmann::json writes the shortest form of a double that parses to the same value, and escapes strings.
#include "tandem/report/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;  // keeps the keys in reading order

void put(Json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[key] = *value;
}

Json row_json(const StudyRow& row) {
  Json object{{"case", row.case_name}, {"version", row.version}, {"device", row.device}};
  put(object, "median_ms", row.median_ms);
  put(object, "min_ms", row.min_ms);
  put(object, "max_ms", row.max_ms);
  put(object, "with_copies_ms", row.with_copies_ms);
  put(object, "speedup", row.speedup);
  put(object, "samples_per_s", row.samples_per_s);
  put(object, "gb_per_s", row.gb_per_s);
  put(object, "gflop_per_s", row.gflop_per_s);
  put(object, "share_of_peak", row.share_of_peak);
  object["agrees"] = row.agrees;
  put(object, "max_error", row.max_error);
  if (row.threads) object["threads"] = *row.threads;
  if (!row.engine.empty()) object["engine"] = row.engine;
  if (row.workers) object["workers"] = *row.workers;
  put(object, "waited_ms", row.waited_ms);
  put(object, "efficiency", row.efficiency);
  if (row.epoch) object["epoch"] = *row.epoch;
  put(object, "accuracy", row.accuracy);
  put(object, "accuracy_spread", row.accuracy_spread);
  put(object, "lead", row.lead);
  put(object, "lead_spread", row.lead_spread);
  return object;
}

Json study_json(const StudyReport& report) {
  Json machine = Json::object();
  for (const Fact& fact : report.machine) {
    std::string name = fact.name;  // facts with the same name are all kept, numbered
    for (int i = 2; machine.contains(name); ++i) name = fmt::format("{} {}", fact.name, i);
    machine[name] = fact.value;
  }
  Json rows = Json::array();
  for (const StudyRow& row : report.rows) rows.push_back(row_json(row));
  Json study = Json::object();
  study["study"] = report.study;
  study["machine"] = std::move(machine);
  study["rows"] = std::move(rows);
  return study;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string to_json_text(const StudyReport& report) {
  return dump(study_json(report));
}

std::string to_json_text(std::span<const StudyReport> reports) {
  Json studies = Json::array();
  for (const StudyReport& report : reports) studies.push_back(study_json(report));
  Json all = Json::object();
  all["studies"] = std::move(studies);
  return dump(all);
}

}  // namespace tandem
