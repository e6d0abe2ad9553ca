// How a batch is cut into shards, and the order in which what the shards give is summed.
//
// Every batch has K shards of consecutive rows. A sum over the rows of a batch is the sum of each shard's
// rows, and these are added along a fixed binary tree over the shard numbers: a node of several shards adds
// the sum of its first half to that of its second half. So the bits of the sum depend on K only, not on who
// computes which shard. A rank that has consecutive shards sums the largest nodes that lie inside its range;
// the rest of the tree is added by whoever gets the sums of all ranks. A shard without rows, in a batch that
// has fewer rows than shards, counts as zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/index_range.h"

namespace tandem {

// Where a node of several shards is divided.
constexpr std::int64_t tree_middle(IndexRange node) {
  return node.begin + node.count() / 2;
}

// The largest nodes of the tree over `shard_count` shards that lie inside `range`, from left to right. Ranks
// that have part_of(shard_count, ranks, rank) get one node each if `ranks` is a power of two that divides
// `shard_count`.
inline std::vector<IndexRange> tree_cover(std::int64_t shard_count, IndexRange range) {
  std::vector<IndexRange> nodes;
  const auto visit = [&](auto&& self, IndexRange node) -> void {
    if (node.end <= range.begin || range.end <= node.begin || node.count() == 0) return;
    if (range.contains(node)) {
      nodes.push_back(node);
    } else {
      self(self, {node.begin, tree_middle(node)});
      self(self, {tree_middle(node), node.end});
    }
  };
  visit(visit, {0, shard_count});
  return nodes;
}

// Adds slot `from` to slot `to`.
struct TreeAddition {
  int to = 0, from = 0;

  friend constexpr bool operator==(TreeAddition, TreeAddition) = default;
};

// The additions, in order, that turn the sums of `nodes` (slot i holds that of nodes[i]) into those of
// tree_cover(shard_count, range), where the nodes cover `range` from left to right. The sum of a node is then
// in the slot of its first shard. A slot is not read any more after it was added to another.
inline std::vector<TreeAddition> tree_additions(std::int64_t shard_count, IndexRange range,
                                                const std::vector<IndexRange>& nodes) {
  std::vector<TreeAddition> additions;
  int next = 0;
  // Sums the given node, which consists of nodes from `next` on; returns its slot.
  const auto sum = [&](auto&& self, IndexRange node) -> int {
    const auto slot = static_cast<std::size_t>(next);
    if (slot < nodes.size() && nodes[slot] == node) return next++;
    const int left = self(self, {node.begin, tree_middle(node)});
    const int right = self(self, {tree_middle(node), node.end});
    additions.push_back({left, right});
    return left;
  };
  for (const IndexRange node : tree_cover(shard_count, range)) sum(sum, node);
  return additions;
}

// The shards of `range`, one node each.
inline std::vector<IndexRange> single_shards(IndexRange range) {
  std::vector<IndexRange> nodes;
  for (std::int64_t shard = range.begin; shard < range.end; ++shard) nodes.push_back({shard, shard + 1});
  return nodes;
}

}  // namespace tandem
