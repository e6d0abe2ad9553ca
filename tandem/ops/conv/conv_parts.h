// What convolutions by blocks have in common: the layout of the packed weight, and how the work is divided
// between threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/core/index_range.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/block_product.h"
#include "tandem/ops/conv/window_band.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

#if defined(__aarch64__)
inline constexpr bool can_gather_windows = false;  // pair_conv.h reads bands
#else
inline constexpr bool can_gather_windows = true;
#endif

// Segments of less than a step, such as those of three channels, are joined: windows are then gathered, which
// needs fewer steps, and their tiles are whole lines of the cache.
inline bool joins_segments(const Conv2dPlan& plan, MatrixType type) {
  const WindowSegments segments = segments_of(plan);
  const std::int64_t bytes = segments.elements * element_size(type);
  return can_gather_windows && segments.count > 1 && bytes < step_bytes;
}

// What is padded to whole steps.
inline WindowSegments padded_segments(const Conv2dPlan& plan, MatrixType type) {
  const WindowSegments segments = segments_of(plan);
  return joins_segments(plan, type) ? WindowSegments{1, segments.count * segments.elements} : segments;
}

inline PackedPanels block_conv_panels(const Conv2dPlan& plan, MatrixType type) {
  const WindowSegments segments = padded_segments(plan, type);
  return {.type = type,
          .columns = plan.filters,
          .inner = segments.count * round_up(segments.elements, step_elements(type))};
}

// The number of parts to split the pairs of panels into, so that the busiest thread ends first: blocks ×
// parts are divided over the threads. More parts balance the load and let a thread read less of the weight,
// but every part copies the images again, and two parts that end within a line of the cache both write it.
struct SplitCosts {
  std::int64_t blocks, pairs, threads;
  std::int64_t product_cycles;  // of one block and one pair
  std::int64_t block_bytes, pair_bytes;
  std::int64_t result_bytes = 0;  // of one row and one pair; 0 does not count shared lines
};
inline std::int64_t choose_parts(const SplitCosts& costs) {
  constexpr std::int64_t bytes_per_cycle = 8;      // from the L3 cache
  constexpr std::int64_t shared_line_cycles = 16;  // estimated: a line moves to the other core and back
  std::int64_t best = 1, best_cycles = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t parts = 1; parts <= costs.pairs; ++parts) {
    if (costs.pairs % parts != 0) continue;
    const std::int64_t part_pairs = costs.pairs / parts,
                       units = ceil_div(costs.blocks * parts, costs.threads),
                       bytes = units * costs.block_bytes +
                               ceil_div(units, costs.blocks) * part_pairs * costs.pair_bytes,
                       shared_lines =
                           parts == 1 || part_pairs * costs.result_bytes % 64 == 0 ? 0 : units * block_rows,
                       cycles = units * part_pairs * costs.product_cycles + bytes / bytes_per_cycle +
                                shared_lines * shared_line_cycles;
    if (cycles < best_cycles) best = parts, best_cycles = cycles;
  }
  return best;
}

// Blocks × pairs of panels for one thread.
struct ConvPart {
  std::int64_t first_block, last_block;
  std::int64_t first_pair, last_pair;
};

// Calls f(ConvPart) for the units from `begin` to `end` of blocks × parts.
template <class F>
void for_each_part(IndexRange units, std::int64_t blocks, std::int64_t part_pairs, const F& f) {
  while (units.begin < units.end) {
    const std::int64_t part = units.begin / blocks, first = units.begin % blocks;
    const std::int64_t last = std::min(blocks, first + units.count());
    f(ConvPart{.first_block = first,
               .last_block = last,
               .first_pair = part * part_pairs,
               .last_pair = (part + 1) * part_pairs});
    units.begin += last - first;
  }
}

// Calls f(block, pair). Where the weight stays in the L2 cache, all its columns follow for one block, whose
// results are then contiguous; else all blocks for one pair of panels.
template <class F>
void for_each_product(const ConvPart& part, IndexRange blocks, bool weight_stays, const F& f) {
  const std::int64_t group = weight_stays ? 1 : blocks.count();
  for (std::int64_t first = blocks.begin; first < blocks.end; first += group)
    for (std::int64_t pair = part.first_pair; pair < part.last_pair; ++pair)
      for (std::int64_t block = first; block < first + group; ++block) f(block, pair);
}

// Where the steps of a window's products read, relative to where the window begins.
inline RecycledVector<std::int64_t> step_offsets(const WindowBand& band, const Conv2dPlan& plan,
                                                 const PackedPanels& panels, std::int64_t lines_of_plane) {
  const WindowSegments segments = segments_of(plan);
  const std::int64_t steps = panels.steps() / segments.count;
  RecycledVector<std::int64_t> offsets;
  for (std::int64_t segment = 0; segment < segments.count; ++segment)
    for (std::int64_t s = 0; s < steps; ++s)
      offsets.push_back(band.segment_offset(segment, lines_of_plane) + s * step_bytes);
  return offsets;
}

}  // namespace tandem::detail
