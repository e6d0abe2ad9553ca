// Random values of shards, their sum by its definition, and what each rank brings.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tandem/core/shard_tree.h"

namespace tandem {

using Floats = std::vector<float>;

// Values of different magnitudes and both signs, so that every order of additions has its own rounding.
inline Floats shard_values(std::int64_t shard, std::int64_t size) {
  std::uint32_t state = static_cast<std::uint32_t>(shard) * 7919U + 12345U;
  Floats values(static_cast<std::size_t>(size));
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * (state % 2 == 0 ? 1e-3F : 1e-6F);
  }
  return values;
}

// The sum of a node by its definition: that of its halves.
inline Floats node_sum(IndexRange node, std::int64_t size) {
  if (node.count() == 1) return shard_values(node.begin, size);
  Floats left = node_sum({node.begin, tree_middle(node)}, size);
  const Floats right = node_sum({tree_middle(node), node.end}, size);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

// The sums of the nodes that `rank` brings.
inline std::vector<Floats> rank_sums(std::int64_t shards, int ranks, int rank, std::int64_t size) {
  std::vector<Floats> sums;
  for (const IndexRange node : tree_cover(shards, part_of(shards, ranks, rank)))
    sums.push_back(node_sum(node, size));
  return sums;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace tandem
