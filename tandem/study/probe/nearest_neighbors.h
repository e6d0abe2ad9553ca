// Classification by the nearest labeled rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/train/feature_rows.h"

namespace tandem {

struct LabeledRows {
  const Features& x;
  std::span<const std::int32_t> labels;  // from 0 to classes − 1
  std::int64_t classes;
};

// The class of each query: the k labeled rows with the largest cosine similarity s vote, each with the weight
// exp(s / 0.07) (Wu et al. 2018). Of equal similarities the first row counts, of equal votes the first class.
std::vector<std::int32_t> nearest_neighbor_classes(const LabeledRows& labeled, const Features& queries,
                                                   std::int64_t k);

}  // namespace tandem
