// Splits the rows × panels of a product over the threads: by rows alone while that balances the load, else by
// panels too, which makes several threads gather or transform the same rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/parallel.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// The number of parts to split the panels into: the fewest that keep the busiest thread within 10 % of the
// mean load.
inline std::int64_t panel_parts(std::int64_t groups, std::int64_t panels, std::int64_t threads) {
  std::int64_t best = 1;
  double best_excess = 1e30;
  for (std::int64_t parts = 1; parts <= panels; ++parts) {
    if (panels % parts != 0) continue;
    const std::int64_t units = groups * parts;
    const double excess =
        static_cast<double>(ceil_div(units, threads) * threads) / static_cast<double>(units);
    if (excess < best_excess - 0.05) {
      best = parts;
      best_excess = excess;
    }
    if (best_excess < 1.1) break;
  }
  return best;
}

// Calls f(first row, last row, first panel, last panel) for parts that cover everything exactly once. First
// rows are multiples of row_group.
template <class F>
void for_each_split(std::int64_t rows, std::int64_t panels, const F& f) {
  const std::int64_t groups = ceil_div(rows, row_group);
  const std::int64_t parts = panel_parts(groups, panels, thread_count());
  const std::int64_t part_panels = panels / parts;
  parallel_for(groups * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t part = begin / groups, first = begin % groups;
      const std::int64_t last = std::min(groups, first + end - begin);
      f(first * row_group, std::min(rows, last * row_group), part * part_panels, (part + 1) * part_panels);
      begin += last - first;
    }
  });
}

}  // namespace tandem::detail
