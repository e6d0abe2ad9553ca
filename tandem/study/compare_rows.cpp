#include "tandem/study/compare_rows.h"

#include <fmt/format.h>

#include <cmath>

#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr double negligible = 0.05;  // smaller differences of the medians are not reported

double fastest(const StudyRow& row) {
  return row.figures["min_ms"].value_or(row.value("median_ms"));
}

double slowest(const StudyRow& row) {
  return row.figures["max_ms"].value_or(row.value("median_ms"));
}

bool is_negligible(double ratio) {
  return std::abs(ratio - 1) < negligible;
}

}  // namespace

Speed compare_speed(const StudyRow& row, const StudyRow& other) {
  if (is_negligible(times_as_fast(row, other))) return Speed::unclear;
  if (slowest(row) < fastest(other)) return Speed::faster;
  if (fastest(row) > slowest(other)) return Speed::slower;
  return Speed::unclear;
}

double times_as_fast(const StudyRow& row, const StudyRow& other) {
  return other.value("median_ms") / row.value("median_ms");
}

std::string relation_text(const StudyRow& row, const StudyRow& other) {
  const double ratio = times_as_fast(row, other);
  if (is_negligible(ratio)) return "about as fast as";
  if (compare_speed(row, other) == Speed::unclear) return "neither clearly faster nor clearly slower than";
  return times_text(ratio) + " as fast as";
}

std::string overlap_text(const StudyRow& row, const StudyRow& other) {
  if (compare_speed(row, other) != Speed::unclear || is_negligible(times_as_fast(row, other))) return {};
  return fmt::format(" (the spreads overlap: {} and {})", format_ms_range(fastest(row), slowest(row)),
                     format_ms_range(fastest(other), slowest(other)));
}

std::string times_text(double ratio) {
  return fmt::format("{:.{}f} times", ratio, ratio >= 10 ? 0 : ratio >= 0.95 ? 1 : 2);
}

}  // namespace tandem
