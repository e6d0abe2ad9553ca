// The registry of studies. Each study picks inputs, checks that every version agrees, measures, and reports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/registry.h"
#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

// The syntax of a study's cases.
enum class CaseKind {
  matrix,    // "1000x1000 f32"
  kernel,    // "1000x1000 f32 3x3"
  layer,     // "784x200 batch 16"
  training,  // "784,200,10 batch 16"
  cluster,   // "resnet18 224 batch 32"
  none,      // the study takes no cases
};

struct Study {
  std::string name;
  std::string summary;
  std::string types;    // allowed types of a case: "f32, f64"
  std::string example;  // an example case: "1000x1000 f32"
  CaseKind kind = CaseKind::none;
  // Members of StudyOptions that the study reads, of those that not all studies do.
  std::vector<std::string> options;
  StudyReport (*run)(const StudyOptions& options) = nullptr;

  bool reads(std::string_view option) const { return std::ranges::find(options, option) != options.end(); }
};

// In display order.
const Registry<Study>& studies();

// Throws Error if the text is not a case of that study.
void check_case(const Study& study, std::string_view text);

// The study with cases that are sizes only, such as "1024x1024 f32": the kernels are given apart from them.
Study without_kernel(Study study);

// Rejoins cases such as "784,32,10 batch 16" that were split at commas: the last part of a case contains a
// space.
std::vector<std::string> join_cases(const std::vector<std::string>& parts);

// "4096x512 f32 3x3": two sizes, the type and, for some studies, the kernel size.
struct CaseName {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::string type;
  std::int64_t kernel_rows = 0;
  std::int64_t kernel_columns = 0;
};
// Throws Error if the text is not a case of that study. Only for the kinds `matrix` and `kernel`.
CaseName parse_case(const Study& study, std::string_view text);

}  // namespace tandem
