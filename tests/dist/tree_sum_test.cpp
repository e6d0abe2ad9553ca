#include "tandem/dist/tree_sum.h"

#include <cmath>

#include "tests/core/error_text.h"
#include "tests/dist/shard_sums.h"

namespace tandem {
namespace {

Floats sum_on_ranks(std::int64_t shards, int ranks, std::int64_t size) {
  std::vector<Floats> all;
  for (int rank = 0; rank < ranks; ++rank)
    for (Floats& sum : rank_sums(shards, ranks, rank, size)) all.push_back(std::move(sum));
  std::vector<const float*> arrays;
  for (const Floats& one : all) arrays.push_back(one.data());
  Floats out(static_cast<std::size_t>(size), NAN);
  TreeSum(shards, ranks).add(arrays, out);
  return out;
}

TEST(TreeSum, AnyNumberOfRanks_GivesTheBitsOfTheTree) {
  for (std::int64_t shards = 1; shards <= 64; ++shards) {
    const Floats expected = node_sum({0, shards}, 5);
    for (int ranks = 1; ranks <= shards; ++ranks)
      ASSERT_TRUE(same_bits(sum_on_ranks(shards, ranks, 5), expected))
          << shards << " shards, " << ranks << " ranks";
  }
}

TEST(TreeSum, AnySize_IsSummedCompletely) {
  for (const std::int64_t size : {0, 1, 15, 16, 17, 2047, 2048, 2049, 10000})
    for (const int ranks : {1, 3, 8})
      EXPECT_TRUE(same_bits(sum_on_ranks(8, ranks, size), node_sum({0, 8}, size))) << size << " " << ranks;
}

TEST(TreeSum, NegativeZeros_StayNegative) {
  const Floats zero(20, -0.0F);
  for (const int ranks : {1, 3, 7}) {
    const TreeSum tree(7, ranks);
    const std::vector<const float*> arrays(static_cast<std::size_t>(tree.node_count()), zero.data());
    Floats out(20, 1.0F);
    tree.add(arrays, out);
    EXPECT_TRUE(same_bits(out, zero));
  }
}

TEST(TreeSum, ResultInPlaceOfAnArray_IsTheSame) {
  const TreeSum tree(6, 5);
  for (int place = 0; place < tree.node_count(); ++place) {
    std::vector<Floats> all;
    for (int rank = 0; rank < 5; ++rank)
      for (Floats& sum : rank_sums(6, 5, rank, 3000)) all.push_back(std::move(sum));
    std::vector<const float*> arrays;
    for (const Floats& one : all) arrays.push_back(one.data());
    Floats& out = all[static_cast<std::size_t>(place)];
    tree.add(arrays, out);
    EXPECT_TRUE(same_bits(out, node_sum({0, 6}, 3000)));
  }
}

TEST(TreeSum, Nodes_AreCountedPerRank) {
  const TreeSum tree(8, 3);  // shards 0–1, 2–4, 5–7
  EXPECT_EQ(tree.node_count(), 5);
  EXPECT_EQ(tree.count(0), 1);
  EXPECT_EQ(tree.count(1), 2);
  EXPECT_EQ(tree.first(2), 3);
  EXPECT_EQ(tree.max_count(), 2);
}

TEST(TreeSum, MoreRanksThanShards_Throws) {
  EXPECT_EQ(error_text([] { TreeSum(2, 3); }),
            "[group] expected at most one rank per shard, got 3 ranks for 2 shards");
  EXPECT_EQ(error_text([] { TreeSum(0, 1); }), "[group] expected 1 to 1024 shards, got 0");
}

}  // namespace
}  // namespace tandem
