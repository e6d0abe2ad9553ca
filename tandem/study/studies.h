// The list of the studies: each picks inputs, checks that every version agrees, measures, and says what it
// found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

// What a case is made of.
enum class CaseKind {
  matrix,    // "1000x1000 f32"
  kernel,    // "1000x1000 f32 3x3"
  training,  // "784,200,10 batch 16"
  none,      // the study has cases of its own only
};

struct Study {
  std::string_view name, summary;
  std::string_view types;    // a case may have: "f32, f64"
  std::string_view example;  // of a case: "1000x1000 f32"
  CaseKind kind = CaseKind::matrix;
  StudyReport (*run)(const StudyOptions& options);
};

// In the order they are shown.
std::span<const Study> all_studies();

// Error for a name that is none.
const Study& find_study(std::string_view name);

// Error for a text that is no case of that study.
void check_case(const Study& study, std::string_view text);

// "784,32,10 batch 16" and others, from what was between commas: a case has a space in its last part.
std::vector<std::string> join_cases(const std::vector<std::string>& parts);

// "4096x512 f32 3x3" → two sizes, the type's name and, where the study has one, the kernel's sizes.
struct CaseName {
  std::int64_t rows = 0, columns = 0;
  std::string type;
  std::int64_t kernel_rows = 0, kernel_columns = 0;
};
// Error for a text that is no case of that study, which is none of trainings.
CaseName parse_case(const Study& study, std::string_view text);

}  // namespace tandem
