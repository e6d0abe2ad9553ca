// The sums of the nodes of all ranks, added along the tree over the shards (core/shard_tree.h).
//
// A rank brings one array for each node of tree_cover(shards, its shards). TreeSum knows all of these nodes
// and adds their arrays in the tree's order, so that every element has the same bits for any number of ranks.
// Nodes that are not there are never added as zeros: −0 + 0 is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

class TreeSum {
 public:
  // The nodes that `ranks` ranks bring. Error unless 1 ≤ ranks ≤ shards ≤ max_shards.
  TreeSum(std::int64_t shards, int ranks);

  static constexpr std::int64_t max_shards = 1024;

  std::int64_t shards() const { return shards_; }
  int ranks() const { return static_cast<int>(first_.size()) - 1; }
  // The nodes of all ranks are numbered from left to right; those of `rank` are [first(rank), first(rank +
  // 1)).
  int first(int rank) const { return first_[static_cast<std::size_t>(rank)]; }
  int count(int rank) const { return first(rank + 1) - first(rank); }
  int node_count() const { return first_.back(); }
  int max_count() const;  // of any rank

  // out[i] = the root's sum of arrays[node][i] for all nodes. `out` may be one of the arrays. The sums are
  // also written to `copy` unless it is null.
  void add(std::span<const float* const> arrays, std::span<float> out, float* copy = nullptr) const;

 private:
  // One addition: left + right → to. Operands from node_count() on are temporary arrays; the last goes to
  // out.
  struct Step {
    int to, left, right;
  };

  std::int64_t shards_;
  std::vector<int> first_;  // per rank, and the number of nodes
  std::vector<Step> steps_;
  int temporaries_ = 0;
};

}  // namespace tandem
