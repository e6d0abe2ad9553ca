#include "tandem/report/grade_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/text/format_number.h"

namespace tandem {
namespace {

template <class F>
double sum_over(const std::vector<GradedPart>& parts, F&& value) {
  double sum = 0;
  for (const GradedPart& part : parts) sum += value(part);
  return sum;
}

std::string time_sentence(const GradedCase& one, const GradedTime& time, bool some_wrong) {
  if (time.student_ms == 0)
    return fmt::format("{}: not timed, because a result is wrong: 0 of {} points for speed.", one.name,
                       format_points(time.of));
  if (time.too_noisy)
    return fmt::format("{}: not graded, machine too noisy: the reference's own times differ by {}.", one.name,
                       format_number(time.spread, Unit::share));
  return fmt::format(
      "{}: took {:.2f} times as long as the reference ({} against {}): {} of {} points for speed{}.",
      one.name, time.ratio, format_number(time.student_ms, Unit::milliseconds),
      format_number(time.reference_ms, Unit::milliseconds), format_points(time.points),
      format_points(time.of), some_wrong ? ", which are in proportion to the correct cases" : "");
}

// The problem that all of several cases have, such as a missing function; else empty.
std::string common_problem(const GradedPart& part) {
  if (part.cases.size() < 2 || part.points > 0 || !part.problem.empty()) return {};
  const std::string& problem = part.cases[0].problem;
  const bool shared = std::ranges::all_of(part.cases, [&](const GradedCase& one) {
    return one.problem == problem && one.pictures.empty() && !(one.time && one.time->too_noisy);
  });
  return shared ? problem : "";
}

}  // namespace

double GradeReport::points() const {
  return sum_over(parts, [](const GradedPart& part) { return part.points; });
}

double GradeReport::not_graded() const {
  return sum_over(parts, [](const GradedPart& part) { return part.not_graded; });
}

double GradeReport::of() const {
  return sum_over(parts, [](const GradedPart& part) { return part.of; }) - not_graded();
}

std::vector<LostPoints> lost_points(const GradedPart& part) {
  std::vector<LostPoints> all;
  if (!part.problem.empty()) all.push_back({.sentence = part.problem});
  const bool some_wrong =
      !std::all_of(part.cases.begin(), part.cases.end(), [](const GradedCase& one) { return one.correct(); });
  if (const std::string problem = common_problem(part); !problem.empty())
    return {{.sentence = fmt::format("All {} cases: {}: 0 of {} points.", part.cases.size(), problem,
                                     format_points(part.of))}};
  for (const GradedCase& one : part.cases) {
    if (!one.problem.empty())
      all.push_back(
          {.sentence = fmt::format("{}: {}: 0 of {} points.", one.name, one.problem, format_points(one.of)),
           .pictures = one.pictures});
    if (one.time && (one.time->too_noisy || one.time->points < one.time->of - 1e-9))
      all.push_back(
          {.sentence = time_sentence(one, *one.time, some_wrong), .not_graded = one.time->too_noisy});
  }
  return all;
}

std::string format_points(double points) {
  const double rounded = std::round(points * 10) / 10;
  return rounded == std::round(rounded) ? fmt::format("{:.0f}", rounded) : fmt::format("{:.1f}", rounded);
}

}  // namespace tandem
