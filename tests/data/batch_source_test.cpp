#include "tandem/data/loader/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tandem/data/synthetic/digits.h"

namespace tandem {
namespace {

// Label and sample at positions [first, first + count).
std::vector<std::pair<std::int32_t, std::int32_t>> read_positions(BatchSource& source, std::int64_t epoch,
                                                                  std::int64_t first, std::int64_t count) {
  std::vector<std::pair<std::int32_t, std::int32_t>> all;
  while (count > 0) {
    const SourceBlock block = source.next_block(epoch, first, count);
    EXPECT_GT(block.count, 0);
    EXPECT_LE(block.count, count);
    for (std::int64_t i = 0; i < block.count; ++i) all.emplace_back(block.labels[i], block.samples[i]);
    first += block.count;
    count -= block.count;
  }
  return all;
}

TEST(InMemorySource, NextBlock_FollowsThePlanWithLabels) {
  const ImageSet set = make_digits(50, 4);
  const BatchPlan plan{.samples = 50, .batch_size = 8, .seed = 3};
  InMemorySource source(set, plan);
  const Tensor order = Tensor::empty({50}, DType::i32);
  fill_order(plan, 2, 0, order);
  const auto samples = order.to_vector<std::int32_t>();
  const auto labels = set.labels.to_vector<std::int32_t>();
  const auto got = read_positions(source, 2, 0, 50);
  ASSERT_EQ(got.size(), 50u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].second, samples[i]);
    EXPECT_EQ(got[i].first, labels[static_cast<std::size_t>(samples[i])]);
  }
  const SourceBlock block = source.next_block(0, 0, 8);
  EXPECT_EQ(block.images, set.images.data<std::uint8_t>());
  EXPECT_EQ(block.image_count, 50);
  EXPECT_EQ(source.image_size(), 784);
}

TEST(InMemorySource, SmallBlocks_EqualOneLargeBlock) {
  const ImageSet set = make_digits(30, 4);
  InMemorySource source(set, {.samples = 30, .batch_size = 4, .seed = 3});
  const auto whole = read_positions(source, 1, 0, 30);
  auto parts = read_positions(source, 1, 0, 4);
  for (const auto& one : read_positions(source, 1, 4, 16)) parts.push_back(one);
  for (const auto& one : read_positions(source, 1, 20, 10)) parts.push_back(one);
  EXPECT_EQ(parts, whole);
}

TEST(InMemorySource, MoreBatchesThanData_RepeatsThePass) {
  const ImageSet set = make_digits(10, 4);
  InMemorySource source(set, {.samples = 10, .batch_size = 4, .batches_per_epoch = 5, .seed = 3});
  const auto all = read_positions(source, 0, 0, 20);
  ASSERT_EQ(all.size(), 20u);
  for (int pass = 0; pass < 2; ++pass) {
    std::set<std::int32_t> samples;
    for (int i = 0; i < 10; ++i) samples.insert(all[static_cast<std::size_t>(10 * pass + i)].second);
    EXPECT_EQ(samples.size(), 10u);
  }
}

TEST(BlockPositions, AreWholeBatchesWithinAnEpoch) {
  EXPECT_EQ(block_positions({.samples = 1000, .batch_size = 16}, 100), 96);
  EXPECT_EQ(block_positions({.samples = 1000, .batch_size = 300}, 100), 300);
  EXPECT_EQ(block_positions({.samples = 10, .batch_size = 16}, 100), 10);
}

}  // namespace
}  // namespace tandem
