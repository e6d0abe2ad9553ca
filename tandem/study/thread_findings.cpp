#include "tandem/study/thread_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/study/compare_rows.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

std::string time_of(const StudyRow& row) {
  return format_number(row.value("median_ms"), Unit::milliseconds);
}

// Threads up to the number of CPUs: how well it scales.
std::string scaling_text(const StudyRow& fewest, const StudyRow& most, const std::string& what) {
  const std::string start = fmt::format("With {} threads {} is", *most.threads, what);
  const double possible = static_cast<double>(*most.threads) / *fewest.threads;
  switch (compare_speed(most, fewest)) {
    case Speed::faster:
      return fmt::format("{} {} with {}: {:.0f} % of linear scaling", start, relation_text(most, fewest),
                         *fewest.threads, 100 * times_as_fast(most, fewest) / possible);
    case Speed::slower:
      return fmt::format(
          "{} slower than with {}, {} versus {}: the work is too small to split, or the cores were busy",
          start, *fewest.threads, time_of(most), time_of(fewest));
    case Speed::unclear:
      break;
  }
  return fmt::format("{} {} with {}{}", start, relation_text(most, fewest), *fewest.threads,
                     overlap_text(most, fewest));
}

}  // namespace

std::vector<const StudyRow*> swept_rows(const std::vector<StudyRow>& rows, const std::string& case_name) {
  std::vector<const StudyRow*> swept;
  for (const StudyRow& row : rows)
    if (row.case_name == case_name && row.threads && row.agrees && row.value("median_ms") > 0)
      swept.push_back(&row);
  std::ranges::stable_sort(swept, {}, [](const StudyRow* row) { return *row->threads; });
  return swept;
}

std::string oversubscription_text(const SweptRow& base, const SweptRow& most, const std::string& unit,
                                  const std::string& what, int cpus) {
  const std::string start =
      fmt::format("With {} {} on {} CPU{}", most.count, unit, cpus, cpus == 1 ? "" : "s");
  const std::string cause = fmt::format("oversubscribed, the {} take turns on the CPUs", unit);
  if (base.count == most.count) return fmt::format("{}, {} is {}", start, what, cause);
  if (compare_speed(*most.row, *base.row) == Speed::slower)
    return fmt::format("{}, {} is slower than with {}, {} versus {}: {}", start, what, base.count,
                       time_of(*most.row), time_of(*base.row), cause);
  return fmt::format("{}, {} is {} with {}{}: {}", start, what, relation_text(*most.row, *base.row),
                     base.count, overlap_text(*most.row, *base.row), cause);
}

std::vector<std::string> thread_findings(const std::vector<StudyRow>& rows, const std::string& case_name,
                                         const std::string& what, int cpus) {
  const std::vector<const StudyRow*> swept = swept_rows(rows, case_name);
  if (swept.empty()) return {};
  std::vector<std::string> findings;
  const auto add = [&](const std::string& text) {
    findings.push_back(fmt::format("{} ({}).", text, case_name));
  };
  const auto over = std::ranges::find_if(swept, [&](const StudyRow* row) { return *row->threads > cpus; });
  const bool any_over = over != swept.end();
  if (over - swept.begin() > 1 && *(*(over - 1))->threads > *swept.front()->threads)
    add(scaling_text(*swept.front(), **(over - 1), what));
  if (!any_over) return findings;
  const StudyRow &base = over == swept.begin() ? **over : **(over - 1), &most = *swept.back();
  add(oversubscription_text({&base, *base.threads}, {&most, *most.threads}, "threads", what, cpus));
  return findings;
}

}  // namespace tandem
