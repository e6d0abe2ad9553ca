// Plan and kernel of sum_tree() (shard_sums.h).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tandem/core/shard_tree.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// The additions, and where the sum of each node of the result ends up.
struct TreePlan {
  std::vector<TreeAddition> additions;
  std::vector<std::size_t> results;  // slots

  TreePlan(std::int64_t shards, IndexRange range, const std::vector<IndexRange>& nodes)
      : additions(tree_additions(shards, range, nodes)) {
    for (const IndexRange node : tree_cover(shards, range))
      results.push_back(
          static_cast<std::size_t>(std::ranges::find(nodes, node.begin, &IndexRange::begin) - nodes.begin()));
  }
};

// sums[i] is slot i; `out` gets the results one after the other. Tensors are contiguous and not empty.
template <Backend B>
void sum_tree_kernel(const TreePlan& plan, std::span<const Tensor> sums, const Tensor& out,
                     StreamView stream);

}  // namespace tandem::detail
