// A grading profile: what a submission is graded on, read from TOML (docs/grading.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/ops/version.h"
#include "tandem/study/grade/score.h"

namespace tandem {

struct GradeLimits {
  double seconds = 85;  // of a submission; what is not graded then earns nothing
  double call_seconds = 10;
  int compile_seconds = 60;
  std::int64_t memory_mb = 4096;
};

struct GradePart {
  std::string name;   // of the file in a submission: max.cpp, max.py, …
  std::string title;  // of its section in the page
  std::string task;   // what is computed, a row of grade_tasks()
  double weight = 0;
  double speed = 0;                               // the share of the weight
  Version reference = Version::parallel;          // whose time is the measure
  Version cuda_reference = Version::cuda_simple;  // of a submission whose arrays are on the GPU
  int threads = 1;                                // of the submission and the reference; 0: all CPUs
  std::vector<std::string> cases;                 // such as "1000x1000 i32"
  std::vector<std::string> timed;                 // some of the cases
  std::vector<std::string> forbidden;             // identifiers that its source may not contain
  std::vector<std::string> launch;  // a CUDA source must have one of these launches: "<<<1, 1024>>>"
};

struct GradeProfile {
  std::string name;
  std::string title;
  std::string hash;                   // SHA-256 of the file
  std::optional<std::uint64_t> seed;  // of the hidden inputs; none: another one in every grading
  SpeedCurve curve;
  GradeLimits limits;
  std::vector<GradePart> parts;

  double total() const;  // the sum of the weights
};

// Throws Error ("[profile] course.toml:7: part.weight: expected …, got …") for text that is no profile.
GradeProfile parse_profile(std::string_view text, const std::string& name);

// The names of the profiles that are part of the program.
std::vector<std::string> profile_names();

// The text of one of them, to start a profile from. Throws Error that lists the names.
std::string_view shipped_profile(std::string_view name);

// A profile of profile_names(), or one in a file, whose name ends in .toml.
GradeProfile read_profile(const std::string& name_or_path);

}  // namespace tandem
