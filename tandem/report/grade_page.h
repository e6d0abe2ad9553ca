// Pages of a grading: one per student, which explains every lost point, and one of a class.
#pragma once

#include <span>
#include <string>

#include "tandem/report/grade_report.h"

namespace tandem {

// For the student: without the seed of the hidden inputs.
std::string grade_page(const GradeReport& report);

struct ClassEntry {
  GradeReport report;
  std::string page;  // the address of the student's page, relative to that of the class
};

// A table that can be sorted by a click on a column's name, without scripts, and the distribution of the
// points. All reports are of the same profile.
std::string class_page(std::span<const ClassEntry> entries, const std::string& title,
                       const std::vector<Fact>& provenance);

}  // namespace tandem
