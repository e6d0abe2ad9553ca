// What convolutions by blocks have in common: the layout of the packed weight, and how the work is divided
// between threads.
#pragma once

#include <cstdint>
#include <limits>

#include "tandem/ops/block_product.h"
#include "tandem/ops/conv/window_band.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

inline PackedPanels block_conv_panels(const Conv2dPlan& plan, MatrixType type) {
  const WindowSegments segments = segments_of(plan);
  return {.type = type,
          .columns = plan.filters,
          .inner = segments.count * round_up(segments.elements, step_elements(type))};
}

// The number of parts to split the pairs of panels into, so that the busiest thread ends first: blocks ×
// parts are divided over the threads. More parts balance the load and let a thread read less of the weight,
// but every part copies the images again.
struct SplitCosts {
  std::int64_t blocks, pairs, threads;
  std::int64_t product_cycles;  // of one block and one pair
  std::int64_t block_bytes, pair_bytes;
};
inline std::int64_t choose_parts(const SplitCosts& costs) {
  constexpr std::int64_t bytes_per_cycle = 8;  // from the L3 cache
  std::int64_t best = 1, best_cycles = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t parts = 1; parts <= costs.pairs; ++parts) {
    if (costs.pairs % parts != 0) continue;
    const std::int64_t part_pairs = costs.pairs / parts,
                       units = ceil_div(costs.blocks * parts, costs.threads),
                       bytes = units * costs.block_bytes +
                               ceil_div(units, costs.blocks) * part_pairs * costs.pair_bytes,
                       cycles = units * part_pairs * costs.product_cycles + bytes / bytes_per_cycle;
    if (cycles < best_cycles) best = parts, best_cycles = cycles;
  }
  return best;
}

// Blocks × pairs of panels for one thread.
struct ConvPart {
  std::int64_t first_block, last_block;
  std::int64_t first_pair, last_pair;
};

}  // namespace tandem::detail
