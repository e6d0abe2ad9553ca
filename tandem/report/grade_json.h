// A grading as JSON: everything but the pictures. The file is the teacher's: it has the seed of the hidden
// inputs. It can be read again, which a class's page and resuming need.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tandem/report/grade_report.h"

namespace tandem {

std::string to_json_text(const GradeReport& report);
// {"students": […]}
std::string to_json_text(std::span<const GradeReport> reports);

// Throws Error, naming `name`, if the text is not one of to_json_text().
GradeReport parse_grade(std::string_view text, const std::string& name);

}  // namespace tandem
