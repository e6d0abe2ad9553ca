// Grades one submission by a profile. What a submission computes is computed in processes of its own
// (KernelProcess, in a sandbox); inputs, clock, references and checks are in this process, which never loads
// anything of a submission.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tandem/report/grade_report.h"
#include "tandem/study/grade/profile.h"
#include "tandem/study/grade/submission.h"

namespace tandem {

struct GradeOptions {
  std::uint64_t seed = 0;     // of the hidden inputs
  std::string program;        // that runs plugins; empty: this program
  double measured_ms = 1500;  // of a timed case, submission and reference together, at least
  std::function<void(const std::string& what)> on_progress = {};  // "max: 1000x1000 i32"
};

// Takes at most about profile.limits.seconds. Throws Error only for failures of this machine.
GradeReport grade(const Submission& submission, const GradeProfile& profile, const GradeOptions& options);

// A report without points, for a submission that cannot be opened.
GradeReport failed_grade(const std::string& student, const GradeProfile& profile, const std::string& problem);

// A seed that nobody can guess.
std::uint64_t random_seed();

}  // namespace tandem
