// JSON files that Tandem writes and reads again: studies, training reports, grades, lists of data and the
// status of a run. What is read can be written, and is then read as the same.
#include <span>
#include <string>

#include "fuzz/fuzz_file.h"
#include "tandem/report/grade_json.h"
#include "tandem/report/json.h"
#include "tandem/report/training_json.h"
#include "tandem/train/data_list.h"
#include "tandem/train/run_status.h"

namespace tandem {
namespace {

// Of the list of a run that is resumed, and one that any input is compared with.
void check_data_list(const DataList& list, const std::string& text) {
  require(parse_data_list(text, "again").to_text() == text);
  require(first_difference(list, list).empty());
  const DataList other{.classes = {"a", "b"},
                       .training = {{0, listed_name("x.jpg")}},
                       .validation = {{1, listed_name("y.jpg")}},
                       .unreadable = {},
                       .training_count = 1,
                       .validation_count = 1,
                       .labels_digest = {}};
  const TensorFile checkpoint{.metadata = {{"tandem.data_digest", list.digest()}}, .tensors = {}};
  const bool is_same = list.digest() == other.digest();
  require(first_difference(list, other).empty() == is_same);
  require(data_difference(checkpoint, fuzz_file(text), other).empty() == is_same);
  require(data_difference(checkpoint, "/nonexistent", list).empty());
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string text(text_of(data, size));
  if (const auto studies = result_or_none([&] { return parse_studies(text, "file"); })) {
    const std::string written = to_json_text(*studies);
    require(to_json_text(parse_studies(written, "again")) == written);
    for (const StudyReport& study : *studies) {
      const std::string one = to_json_text(study);
      require(to_json_text(parse_studies(one, "one").at(0)) == one);
    }
  }
  if (const auto report = result_or_none([&] { return parse_training_report(text, "file"); })) {
    const std::string written = to_json_text(*report);
    require(to_json_text(parse_training_report(written, "again")) == written);
  }
  if (const auto report = result_or_none([&] { return parse_grade(text, "file"); })) {
    const std::string written = to_json_text(*report);
    require(to_json_text(parse_grade(written, "again")) == written);
    require(to_json_text(std::span(&*report, 1)).find("\"students\"") != std::string::npos);
  }
  if (const auto list = result_or_none([&] { return parse_data_list(text, "file"); }))
    check_data_list(*list, list->to_text());
  if (const auto status = parse_run_status(text)) {
    const std::string written = to_json_text(*status);
    require(to_json_text(parse_run_status(written).value()) == written);
  }
  return 0;
}
