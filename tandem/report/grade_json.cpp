#include "tandem/report/grade_json.h"

#include "tandem/core/check.h"
#include "tandem/report/facts_json.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const GradedTime& time) {
  return {{"student_ms", time.student_ms},
          {"reference_ms", time.reference_ms},
          {"ratio", time.ratio},
          {"spread", time.spread},
          {"too_noisy", time.too_noisy},
          {"points", time.points},
          {"of", time.of}};
}

Json to_json(const GradedCase& one) {
  Json json{{"case", one.name}, {"correct", one.correct()}, {"points", one.points}, {"of", one.of}};
  if (!one.problem.empty()) json["problem"] = one.problem;
  if (one.time) json["time"] = to_json(*one.time);
  return json;
}

Json to_json(const GradedPart& part) {
  Json json{{"part", part.name},     {"title", part.title}, {"task", part.task},
            {"points", part.points}, {"of", part.of},       {"not_graded", part.not_graded}};
  if (!part.file.empty()) json["file"] = part.file;
  if (!part.command.empty()) json["command"] = part.command;
  if (!part.reference.empty()) json["reference"] = part.reference;
  if (!part.problem.empty()) json["problem"] = part.problem;
  json["lost_points"] = Json::array();
  for (const LostPoints& lost : lost_points(part)) json["lost_points"].push_back(lost.sentence);
  json["cases"] = Json::array();
  for (const GradedCase& one : part.cases) json["cases"].push_back(to_json(one));
  return json;
}

Json to_json(const GradeReport& report) {
  Json json{{"student", report.student}, {"profile", report.profile}, {"title", report.title},
            {"points", report.points()}, {"of", report.of()},         {"not_graded", report.not_graded()}};
  if (!report.problem.empty()) json["problem"] = report.problem;
  json["parts"] = Json::array();
  for (const GradedPart& part : report.parts) json["parts"].push_back(to_json(part));
  json["full_up_to"] = report.full_up_to;
  json["zero_from"] = report.zero_from;
  json["elapsed_s"] = report.elapsed_s;
  json["seed"] = report.seed;
  json["submission_sha256"] = report.submission_hash;
  json["profile_sha256"] = report.profile_hash;
  json["missing_protections"] = report.missing_protections;
  json["machine"] = facts_json(report.machine);
  json["provenance"] = facts_json(report.provenance);
  return json;
}

// Text from a compiler or a file name may be no UTF-8.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

GradedCase case_of(const Json& json) {
  GradedCase one{.name = json.at("case"), .points = json.at("points"), .of = json.at("of")};
  one.problem = json.value("problem", "");
  if (json.contains("time")) {
    const Json& time = json.at("time");
    one.time = GradedTime{.student_ms = time.at("student_ms"),
                          .reference_ms = time.at("reference_ms"),
                          .ratio = time.at("ratio"),
                          .spread = time.at("spread"),
                          .too_noisy = time.at("too_noisy"),
                          .points = time.at("points"),
                          .of = time.at("of")};
  }
  return one;
}

GradedPart part_of(const Json& json) {
  GradedPart part{.name = json.at("part"),
                  .title = json.at("title"),
                  .task = json.at("task"),
                  .file = json.value("file", ""),
                  .command = json.value("command", ""),
                  .reference = json.value("reference", ""),
                  .problem = json.value("problem", ""),
                  .points = json.at("points"),
                  .of = json.at("of"),
                  .not_graded = json.at("not_graded")};
  for (const Json& one : json.at("cases")) part.cases.push_back(case_of(one));
  return part;
}

}  // namespace

std::string to_json_text(const GradeReport& report) {
  return text_of(to_json(report));
}

std::string to_json_text(std::span<const GradeReport> reports) {
  Json all = Json::array();
  for (const GradeReport& report : reports) all.push_back(to_json(report));
  return text_of({{"students", all}});
}

GradeReport parse_grade(std::string_view text, const std::string& name) {
  try {
    const Json json = Json::parse(text);
    GradeReport report{.student = json.at("student"),
                       .profile = json.at("profile"),
                       .title = json.at("title"),
                       .profile_hash = json.at("profile_sha256"),
                       .submission_hash = json.at("submission_sha256"),
                       .problem = json.value("problem", ""),
                       .seed = json.at("seed"),
                       .full_up_to = json.at("full_up_to"),
                       .zero_from = json.at("zero_from"),
                       .elapsed_s = json.at("elapsed_s"),
                       .missing_protections = json.at("missing_protections"),
                       .machine = parse_facts(json.at("machine")),
                       .provenance = parse_facts(json.at("provenance"))};
    for (const Json& part : json.at("parts")) report.parts.push_back(part_of(part));
    return report;
  } catch (const nlohmann::json::exception& error) {
    fail("[grade] {}: expected the result of a grading: {}", name, error.what());
  }
}

}  // namespace tandem
