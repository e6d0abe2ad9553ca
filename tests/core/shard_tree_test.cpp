#include "tandem/core/shard_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace tandem {
namespace {

std::vector<float> random_values(std::int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(normal(generator) * 1000);
  return values;
}

// The definition: a node is the sum of its halves.
float sum_of(const std::vector<float>& values, IndexRange node) {
  if (node.count() == 1) return values[static_cast<std::size_t>(node.begin)];
  return sum_of(values, {node.begin, tree_middle(node)}) + sum_of(values, {tree_middle(node), node.end});
}

// The slots after the additions; slots that were added to another are NaN, so that reading one shows.
std::vector<float> add(std::vector<float> slots, const std::vector<TreeAddition>& additions) {
  for (const TreeAddition& one : additions) {
    slots[static_cast<std::size_t>(one.to)] += slots[static_cast<std::size_t>(one.from)];
    slots[static_cast<std::size_t>(one.from)] = NAN;
  }
  return slots;
}

TEST(ShardTree, Rows_AreDividedEvenlyAndCompletely) {
  EXPECT_EQ(rows_of_shards(10, 4, {0, 1}), (IndexRange{0, 2}));
  EXPECT_EQ(rows_of_shards(10, 4, {1, 2}), (IndexRange{2, 5}));
  EXPECT_EQ(rows_of_shards(10, 4, {0, 4}), (IndexRange{0, 10}));
  EXPECT_EQ(rows_of_shards(3, 8, {0, 2}), (IndexRange{0, 0}));  // fewer rows than shards: some are empty
  EXPECT_EQ(rows_of_shards(3, 8, {2, 3}), (IndexRange{0, 1}));
  for (std::int64_t shards = 1; shards <= 16; ++shards)
    for (std::int64_t k = 0; k < shards; ++k) {
      const std::int64_t rows = rows_of_shards(37, shards, {k, k + 1}).count();
      EXPECT_GE(rows, 37 / shards);
      EXPECT_LE(rows, 37 / shards + 1);
    }
}

TEST(ShardTree, Cover_HasTheLargestNodesInside) {
  using Nodes = std::vector<IndexRange>;
  EXPECT_EQ(tree_cover(8, {0, 8}), (Nodes{{0, 8}}));
  EXPECT_EQ(tree_cover(8, {2, 5}), (Nodes{{2, 4}, {4, 5}}));
  EXPECT_EQ(tree_cover(8, {1, 7}), (Nodes{{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(tree_cover(7, {3, 7}), (Nodes{{3, 7}}));
  EXPECT_EQ(tree_cover(8, {3, 3}), Nodes{});
}

TEST(ShardTree, PowerOfTwoThatDividesTheShards_GivesEachRankOneNode) {
  for (std::int64_t shards = 1; shards <= 64; ++shards)
    for (std::int64_t ranks = 1; shards % ranks == 0; ranks *= 2)
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(tree_cover(shards, part_of(shards, ranks, rank)).size(), 1u) << shards << " " << ranks;
}

TEST(ShardTree, AnyNumberOfRanks_GivesTheBitsOfTheTree) {
  for (std::int64_t shards = 1; shards <= 64; ++shards) {
    const std::vector<float> values = random_values(shards);
    const float expected = sum_of(values, {0, shards});
    for (std::int64_t ranks = 1; ranks <= shards; ++ranks) {
      std::vector<IndexRange> nodes;
      std::vector<float> sums;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const IndexRange range = part_of(shards, ranks, rank);
        const std::vector<IndexRange> cover = tree_cover(shards, range), leaves = single_shards(range);
        const std::vector<float> own = add({values.begin() + range.begin, values.begin() + range.end},
                                           tree_additions(shards, range, leaves));
        for (const IndexRange node : cover) {
          nodes.push_back(node);
          sums.push_back(own[static_cast<std::size_t>(node.begin - range.begin)]);
        }
      }
      const float result = add(sums, tree_additions(shards, {0, shards}, nodes))[0];
      EXPECT_EQ(std::memcmp(&result, &expected, sizeof result), 0) << shards << " shards, " << ranks;
    }
  }
}

}  // namespace
}  // namespace tandem
