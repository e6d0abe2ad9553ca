#include "tandem/report/class_metrics.h"

#include <cmath>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<ClassMetrics> class_metrics(std::span<const std::int64_t> confusion) {
  const auto classes =
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  expect(classes * classes == confusion.size());
  std::vector<ClassMetrics> all(classes);
  for (std::size_t truth = 0; truth < classes; ++truth)
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const std::int64_t count = confusion[truth * classes + predicted];
      all[truth].images += count;
      all[predicted].predicted += count;
      if (truth == predicted) all[truth].correct = count;
    }
  for (ClassMetrics& metrics : all) {
    metrics.precision = share_of(metrics.correct, metrics.predicted);
    metrics.recall = share_of(metrics.correct, metrics.images);
  }
  return all;
}

}  // namespace tandem
