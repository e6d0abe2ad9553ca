// The result of a grading: points, and for every lost point the case and the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

struct GradePicture {
  std::string caption;
  std::string png;  // the bytes of the file
};

struct GradedTime {
  double student_ms = 0;  // 0: not timed, because a result is wrong
  double reference_ms = 0;
  double ratio = 0;        // of the two
  double spread = 0;       // of the reference, relative
  bool too_noisy = false;  // not graded
  double points = 0;
  double of = 0;
};

struct GradedCase {
  std::string name;
  double points = 0;  // for correctness
  double of = 0;
  std::string problem;  // why points were lost, as a sentence; empty when it is correct
  std::vector<GradePicture> pictures;
  std::optional<GradedTime> time;

  bool correct() const { return problem.empty(); }
};

struct GradedPart {
  std::string name;
  std::string title;
  std::string task;       // what the function computes
  std::string file;       // in the submission; empty when there is none
  std::string command;    // that compiled it
  std::string reference;  // whose time is the measure: "parallel, 2 threads"; empty when it is not timed
  std::string problem;    // of the whole part; then there are no cases
  double points = 0;
  double of = 0;
  double not_graded = 0;  // points that could not be graded, because the machine was too noisy
  std::vector<GradedCase> cases;
};

struct GradeReport {
  std::string student;
  std::string profile;
  std::string title;  // of the profile
  std::string profile_hash;
  std::string submission_hash;
  std::string problem;     // of the whole submission: an archive that cannot be unpacked
  std::uint64_t seed = 0;  // only in the JSON, which is the teacher's
  double full_up_to = 0;   // the curve
  double zero_from = 0;
  double elapsed_s = 0;
  std::vector<GradedPart> parts;
  std::vector<std::string> missing_protections;  // of this machine, in words
  std::vector<Fact> machine;
  std::vector<Fact> provenance;

  double points() const;
  double not_graded() const;
  double of() const;  // of the parts, without what was not graded
};

// Why points of a part were lost, or not graded.
struct LostPoints {
  std::string sentence;
  std::vector<GradePicture> pictures;
  bool not_graded = false;
};

// Every lost point has a sentence: of the part, of a case, or of a time.
std::vector<LostPoints> lost_points(const GradedPart& part);

// "12.5", "100": at most one decimal.
std::string format_points(double points);

}  // namespace tandem
