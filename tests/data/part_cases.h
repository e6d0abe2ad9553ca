// Shared by the tests of parts of batches: plans that are divided among ranks.
#pragma once

#include <ostream>
#include <vector>

#include "tandem/data/batches.h"

namespace tandem {

// A plan whose batches are cut into shards and given to ranks.
struct Division {
  BatchPlan whole;
  std::int64_t shards = 1, ranks = 1;
  bool previous_row = false;

  // The plan of each rank.
  std::vector<BatchPlan> parts() const {
    std::vector<BatchPlan> all;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      all.push_back(whole);
      all.back().part = {.shards = shards, .own = part_of(shards, ranks, rank), .previous_row = previous_row};
    }
    return all;
  }

  friend std::ostream& operator<<(std::ostream& out, const Division& one) {
    return out << one.whole.samples << " samples in batches of " << one.whole.batch_size << ", " << one.shards
               << " shards, " << one.ranks << " ranks" << (one.previous_row ? ", with the previous row" : "");
  }
};

// With and without a remainder, passes that end within a batch, a remainder of which some ranks have nothing,
// and an epoch of less than one batch.
inline std::vector<Division> divisions() {
  std::vector<Division> all;
  for (const BatchPlan& whole :
       {BatchPlan{.samples = 103, .batch_size = 10, .seed = 5},
        BatchPlan{.samples = 50, .batch_size = 7, .batches_per_epoch = 12},
        BatchPlan{.samples = 31, .batch_size = 3, .shuffle = false},
        BatchPlan{.samples = 33, .batch_size = 8, .seed = 2},
        BatchPlan{.samples = 64, .batch_size = 16, .seed = 3}, BatchPlan{.samples = 5, .batch_size = 8}})
    for (const std::int64_t shards : {1, 2, 3, 5, 8})
      for (const std::int64_t ranks : {1, 2, 3, 5, 8}) {
        if (shards > whole.batch_size || ranks > shards) continue;
        all.push_back({.whole = whole, .shards = shards, .ranks = ranks});
        if (ranks > 1)
          all.push_back({.whole = whole, .shards = shards, .ranks = ranks, .previous_row = true});
      }
  return all;
}

}  // namespace tandem
