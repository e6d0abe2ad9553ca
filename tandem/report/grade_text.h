// A grading, or the gradings of a class, for the terminal.
#pragma once

#include <span>
#include <string>

#include "tandem/report/grade_report.h"
#include "tandem/text/table.h"

namespace tandem {

// The points of every part, and a sentence for every lost point.
std::string grade_text(const GradeReport& report, const TextStyle& style);

// One row per student.
std::string class_text(std::span<const GradeReport> reports, const TextStyle& style);

}  // namespace tandem
