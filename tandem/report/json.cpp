// nlohmann::json writes the shortest form of a double that parses to the same value, and escapes strings.
#include "tandem/report/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tandem/report/study_rows.h"

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

Json facts_json(const std::vector<Fact>& facts) {
  Json object = Json::object();
  for (const Fact& fact : facts) {
    std::string name = fact.name;  // facts with the same name are all kept, numbered
    for (int i = 2; object.contains(name); ++i) name = fmt::format("{} {}", fact.name, i);
    object[name] = fact.value;
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
