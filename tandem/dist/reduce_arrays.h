// What one rank brings to a sum over all shards, as plain arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/dist/group.h"
#include "tandem/dist/tree_sum.h"

namespace tandem {

struct ReduceArrays {
  std::shared_ptr<const TreeSum> tree;
  std::vector<const float*> mine;  // one array per node of this rank
  float* out = nullptr;            // may be one of them
  std::int64_t size = 0;           // floats of each array

  // The elements [begin, end).
  ReduceArrays piece(std::int64_t begin, std::int64_t end) const;
};

// The arrays of the tensors. Error for tensors that do not fit the tree or each other, or are not on the CPU.
ReduceArrays reduce_arrays(std::shared_ptr<const TreeSum> tree, int rank, const Partials& mine,
                           const Tensor& out);

}  // namespace tandem
