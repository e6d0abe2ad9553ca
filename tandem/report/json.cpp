// nlohmann::json writes the shortest form of a double that parses to the same value, and escapes strings.
#include "tandem/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tandem/core/check.h"
#include "tandem/report/facts_json.h"
#include "tandem/report/study_rows.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;  // keeps the keys in reading order

// Null for what is left out: absent figures, figures that are not finite and empty texts.
Json json_value(std::monostate) {
  return nullptr;
}
Json json_value(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
Json json_value(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json json_value(int count) {
  return count;
}
Json json_value(bool flag) {
  return flag;
}

Json row_json(const StudyRow& row) {
  Json object = Json::object();
  for (const StudyField& field : study_fields) {
    Json value = std::visit([](const auto& held) { return json_value(held); }, study_value(row, field));
    if (!value.is_null()) object[std::string(field.key)] = std::move(value);
  }
  return object;
}

Json study_json(const StudyReport& report) {
  Json rows = Json::array();
  for (const StudyRow& row : report.rows) rows.push_back(row_json(row));
  Json study = Json::object();
  study["study"] = report.study;
  study["machine"] = facts_json(report.machine);
  if (!report.provenance.empty()) study["provenance"] = facts_json(report.provenance);
  if (!report.versions.empty()) study["versions"] = facts_json(report.versions);
  if (!report.settings.empty()) study["settings"] = facts_json(report.settings);
  study["rows"] = std::move(rows);
  return study;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

void read_field(const Json& value, const StudyField& field, StudyRow& row) {
  if (const auto* const text = std::get_if<std::string StudyRow::*>(&field.member))
    row.** text = value.get<std::string>();
  else if (const auto* const count = std::get_if<std::optional<int> StudyRow::*>(&field.member))
    row.** count = value.get<int>();
  else if (const auto* const flag = std::get_if<bool StudyRow::*>(&field.member))
    row.** flag = value.get<bool>();
  else
    row.figures.set(field.key, value.get<double>());
}

StudyRow parse_row(const Json& object) {
  StudyRow row;
  for (const StudyField& field : study_fields)
    if (const auto value = object.find(std::string(field.key)); value != object.end())
      read_field(*value, field, row);
  return row;
}

StudyReport parse_study(const Json& object) {
  StudyReport report;
  report.study = object.at("study").get<std::string>();
  report.machine = parse_facts(object.value("machine", Json::object()));
  report.provenance = parse_facts(object.value("provenance", Json::object()));
  report.versions = parse_facts(object.value("versions", Json::object()));
  report.settings = parse_facts(object.value("settings", Json::object()));
  for (const Json& row : object.at("rows")) report.rows.push_back(parse_row(row));
  return report;
}

}  // namespace

std::vector<StudyReport> parse_studies(std::string_view text, const std::string& name) {
  std::vector<StudyReport> reports;
  try {
    const Json all = Json::parse(text);
    if (all.contains("studies"))
      for (const Json& study : all["studies"]) reports.push_back(parse_study(study));
    else
      reports.push_back(parse_study(all));
  } catch (const Json::exception&) {
    fail("[compare] {}: expected the JSON of a study, got something else", one_line(name));
  }
  return reports;
}

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
