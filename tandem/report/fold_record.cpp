#include "tandem/report/fold_record.h"

#include <fmt/format.h>

#include <cmath>

namespace tandem {

FoldSummary summarize(std::span<const FoldRecord> folds) {
  if (folds.empty()) return {};
  const auto count = static_cast<double>(folds.size());
  double mean = 0, squares = 0;
  for (const FoldRecord& fold : folds) mean += fold.accuracy() / count;
  for (const FoldRecord& fold : folds) squares += std::pow(fold.accuracy() - mean, 2);
  return {.mean = mean, .deviation = folds.size() > 1 ? std::sqrt(squares / (count - 1)) : not_measured};
}

std::string format_summary(const FoldSummary& summary) {
  return fmt::format("{:.2f} ± {:.2f} %", 100 * summary.mean, 100 * summary.deviation);
}

}  // namespace tandem
