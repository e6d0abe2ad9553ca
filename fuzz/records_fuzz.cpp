// JSON files that Tandem writes and reads again: studies, training reports, grades, lists of data and the
// status of a run. What is read can be written, and is then read as the same.
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/report/grade_json.h"
#include "tandem/report/json.h"
#include "tandem/report/training_json.h"
#include "tandem/train/data_list.h"
#include "tandem/train/run_status.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string text(text_of(data, size));
  if (const auto studies = result_or_none([&] { return parse_studies(text, "file"); })) {
    const std::string written = to_json_text(*studies);
    require(to_json_text(parse_studies(written, "again")) == written);
  }
  if (const auto report = result_or_none([&] { return parse_training_report(text, "file"); })) {
    const std::string written = to_json_text(*report);
    require(to_json_text(parse_training_report(written, "again")) == written);
  }
  if (const auto report = result_or_none([&] { return parse_grade(text, "file"); })) {
    const std::string written = to_json_text(*report);
    require(to_json_text(parse_grade(written, "again")) == written);
  }
  if (const auto list = result_or_none([&] { return parse_data_list(text, "file"); })) {
    const std::string written = list->to_text();
    require(parse_data_list(written, "again").to_text() == written);
  }
  if (const auto status = parse_run_status(text)) {
    const std::string written = to_json_text(*status);
    require(to_json_text(parse_run_status(written).value()) == written);
  }
  return 0;
}
