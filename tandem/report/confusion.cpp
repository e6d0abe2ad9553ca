#include "tandem/report/confusion.h"

#include <algorithm>
#include <tuple>

namespace tandem {

Confusion read_confusion(std::span<const std::int64_t> counts) {
  Confusion all;
  for (const ClassMetrics& metrics : class_metrics(counts)) all.classes.push_back({metrics});
  const std::size_t classes = all.classes.size();
  for (std::size_t truth = 0; truth < classes; ++truth) {
    ClassFigures& figures = all.classes[truth];
    all.images += figures.images;
    all.correct += figures.correct;
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const ConfusedPair pair{truth, predicted, counts[truth * classes + predicted]};
      if (truth == predicted || pair.count == 0) continue;
      all.pairs.push_back(pair);
      all.worst_share = std::max(all.worst_share, all.share(pair));
      if (pair.count <= figures.confused) continue;
      figures.confused = pair.count;
      figures.confused_with = predicted;
    }
  }
  std::ranges::stable_sort(all.pairs, [&](const ConfusedPair& a, const ConfusedPair& b) {
    return std::tuple(a.count, all.share(a)) > std::tuple(b.count, all.share(b));
  });
  return all;
}

}  // namespace tandem
