// Grading into a folder of results: a file and a page per student, written when the student is graded, so
// that the grading of a class can be stopped and resumed, and be split between the tasks of a SLURM array.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/study/grade/grade.h"

namespace tandem {

struct ClassOptions {
  std::filesystem::path results;      // the folder; created if needed
  std::optional<std::uint64_t> seed;  // none: the profile's, or a random one for every student
  std::string program;                // that runs plugins; empty: this program
  std::vector<Fact> provenance;
  std::function<void(const std::string& what)> on_progress = {};
};

struct ClassResult {
  GradeReport report;
  bool resumed = false;  // read from an earlier grading of the same submission by the same profile
};

// The seed that was asked for, the profile's, or a random one.
std::uint64_t choose_seed(const std::optional<std::uint64_t>& given, const GradeProfile& profile);

// Grades a submission, unless its result is there, and writes STUDENT.html and STUDENT.json. A submission
// that cannot be opened gets no points and the reason.
ClassResult grade_into(const std::filesystem::path& submission, const GradeProfile& profile,
                       const ClassOptions& options);

// The text of an sbatch file: an array with one task per submission, each of which runs `command` with the
// submission's path as a further word.
std::string sbatch_text(const std::vector<std::filesystem::path>& submissions,
                        const std::vector<std::string>& command, const GradeProfile& profile);

}  // namespace tandem
