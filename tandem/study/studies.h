// The list of the studies: each picks inputs, checks that every version agrees, measures, and says what it
// found.
#pragma once

#include <span>
#include <string_view>

#include "tandem/report/study_report.h"
#include "tandem/study/options.h"

namespace tandem {

struct Study {
  std::string_view name, summary;
  StudyReport (*run)(const StudyOptions& options);
};

// In the order they are shown.
std::span<const Study> all_studies();

// Error for a name that is none.
const Study& find_study(std::string_view name);

}  // namespace tandem
