#include "tandem/data/batches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/core/error_text.h"
#include "tests/data/part_cases.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

std::vector<std::int32_t> order(const BatchPlan& plan, std::int64_t epoch, std::int64_t first,
                                std::int64_t count, Device device = cpu_device) {
  const Tensor out = Tensor::empty({count}, DType::i32, device);
  fill_order(plan, epoch, first, out);
  return out.to_vector<std::int32_t>();
}

TEST(Batches, OnePass_LastBatchHoldsTheRemainder) {
  const BatchPlan plan{.samples = 103, .batch_size = 10};
  EXPECT_EQ(plan.steps(), 11);
  EXPECT_EQ(plan.rows(0), 10);
  EXPECT_EQ(plan.rows(10), 3);
  auto all = order(plan, 4, 0, 103);
  std::sort(all.begin(), all.end());
  std::vector<std::int32_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Batches, NotShuffled_EveryEpochHasTheStoredOrderAndTheRemainder) {
  const BatchPlan plan{.samples = 103, .batch_size = 10, .shuffle = false};
  EXPECT_EQ(plan.steps(), 11);
  EXPECT_EQ(plan.rows(10), 3);
  std::vector<std::int32_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  for (const std::int64_t epoch : {0, 1, 4}) EXPECT_EQ(order(plan, epoch, 0, 103), expected);
  EXPECT_EQ(order(plan, 2, 100, 3), (std::vector<std::int32_t>{100, 101, 102}));
}

// 100 samples of classes 0, 2, 3 and 7 with 90, 1, 6 and 3 samples.
std::int32_t uneven_label(std::int64_t sample) {
  return sample < 90 ? 0 : sample < 91 ? 2 : sample < 97 ? 3 : 7;
}

TEST(Batches, Balanced_EveryGroupHasOneSampleOfEachClass) {
  const ClassLists classes(100, uneven_label);
  const BatchPlan plan{.samples = 100, .batch_size = 10, .balanced = classes.table()};
  EXPECT_EQ(plan.steps(), 10);
  std::vector<int> first_classes(8);
  for (const std::int64_t epoch : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const auto all = order(plan, epoch, 0, 100);
    std::vector<std::vector<std::int32_t>> of_class(8);
    for (std::size_t group = 0; group < 25; ++group) {
      std::vector<std::int32_t> labels;
      for (std::size_t i = 4 * group; i < 4 * group + 4; ++i) {
        labels.push_back(uneven_label(all[i]));
        of_class[static_cast<std::size_t>(labels.back())].push_back(all[i]);
      }
      ++first_classes[static_cast<std::size_t>(labels.front())];
      std::ranges::sort(labels);
      ASSERT_EQ(labels, (std::vector<std::int32_t>{0, 2, 3, 7}));
    }
    // A class's samples are all used before one is used again.
    for (const auto& [label, count] : {std::pair{0, 25}, {2, 1}, {3, 6}, {7, 3}})
      for (int begin = 0; begin + count <= 25; begin += count) {
        const auto from = of_class[static_cast<std::size_t>(label)].begin() + begin;
        std::vector<std::int32_t> pass(from, from + count);
        std::ranges::sort(pass);
        EXPECT_EQ(std::ranges::adjacent_find(pass), pass.end()) << label;
      }
  }
  for (const int label : {0, 2, 3, 7}) EXPECT_GT(first_classes[static_cast<std::size_t>(label)], 25) << label;
}

TEST(Batches, Balanced_DependsOnSeedAndEpochOnly) {
  const ClassLists classes(100, uneven_label);
  BatchPlan plan{.samples = 100, .batch_size = 10, .balanced = classes.table()};
  const auto all = order(plan, 2, 0, 100), part = order(plan, 2, 37, 50);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 37));
  EXPECT_NE(order(plan, 3, 0, 100), all);
  for (const Device device : test_devices()) EXPECT_EQ(order(plan, 2, 0, 100, device), all);
  plan.part = {.shards = 3, .own = {1, 3}};
  std::vector<std::int32_t> own;
  for (std::int64_t i = 0; i < plan.local_positions(); ++i)
    own.push_back(all[static_cast<std::size_t>(plan.global_position(i))]);
  EXPECT_EQ(order(plan, 2, 0, plan.local_positions()), own);
  plan.part = {};
  plan.seed = 9;
  EXPECT_NE(order(plan, 2, 0, 100), all);
  plan.shuffle = false;
  EXPECT_EQ(error_text([&] { check_batch_plan(plan); }),
            "[batches] expected shuffled samples with balanced classes, got the stored order");
}

TEST(Batches, Keys_AreSamplesAndDifferWhenOneIsDrawnAgain) {
  const ClassLists classes(100, uneven_label);
  const auto keys_of = [](const BatchPlan& plan) {
    const Tensor out = Tensor::empty({plan.positions()}, DType::i32);
    fill_keys(plan, 1, 0, out);
    return out.to_vector<std::int32_t>();
  };
  const BatchPlan plain{.samples = 100, .batch_size = 10};
  EXPECT_EQ(keys_of(plain), order(plain, 1, 0, 100));
  const BatchPlan plan{.samples = 100, .batch_size = 10, .balanced = classes.table()};
  std::vector<std::int32_t> keys = keys_of(plan);
  const std::vector<std::int32_t> samples = order(plan, 1, 0, 100);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i] % 100, samples[i]);
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST(Batches, FillOrder_FromAnyPosition_GivesTheSameOrder) {
  const BatchPlan plan{.samples = 60000, .batch_size = 16, .seed = 9};
  const auto all = order(plan, 2, 0, 60000), part = order(plan, 2, 12345, 777);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 12345));
  EXPECT_NE(order(plan, 3, 0, 100), order(plan, 2, 0, 100));
}

TEST(Batches, SecondPassOfAnEpoch_HasAnotherOrder) {
  const BatchPlan plan{.samples = 50, .batch_size = 10, .batches_per_epoch = 12};
  EXPECT_EQ(plan.steps(), 12);
  EXPECT_EQ(plan.rows(11), 10);
  const auto all = order(plan, 0, 0, 120);
  std::vector<std::int32_t> first(all.begin(), all.begin() + 50), second(all.begin() + 50, all.begin() + 100);
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
}

// The positions of a step's local rows, from the definitions.
std::vector<std::int64_t> local_rows_of(const BatchPlan& plan, std::int64_t step) {
  const std::int64_t rows = plan.rows(step), shards = plan.part.shards;
  std::vector<std::int64_t> all;
  for (std::int64_t shard = plan.part.own.begin; shard < plan.part.own.end; ++shard)
    for (std::int64_t row = shard * rows / shards; row < (shard + 1) * rows / shards; ++row)
      all.push_back(step * plan.batch_size + row);
  if (plan.part.previous_row && !all.empty()) {
    const std::int64_t first = all.front() - step * plan.batch_size;
    all.insert(all.begin(), step * plan.batch_size + (first + rows - 1) % rows);
  }
  return all;
}

TEST(BatchPart, PartsOfAllRanks_AreTheWholeBatches) {
  for (const Division& division : divisions()) {
    const std::vector<BatchPlan> parts = division.parts();
    for (std::int64_t step = 0; step < division.whole.steps(); ++step) {
      std::int64_t next = 0;
      for (const BatchPlan& plan : parts) {
        EXPECT_EQ(plan.own_rows(step).begin, next) << division;
        next = plan.own_rows(step).end;
      }
      EXPECT_EQ(next, division.whole.rows(step)) << division;
    }
  }
}

TEST(BatchPart, LocalPositions_AreTheOwnRowsAfterThePreviousOne) {
  for (const Division& division : divisions())
    for (const BatchPlan& plan : division.parts()) {
      EXPECT_EQ(plan.steps(), division.whole.steps());
      EXPECT_EQ(plan.positions(), division.whole.positions());
      std::int64_t local = 0;
      for (std::int64_t step = 0; step < plan.steps(); ++step) {
        const std::vector<std::int64_t> expected = local_rows_of(plan, step);
        EXPECT_EQ(plan.rows(step), division.whole.rows(step));
        EXPECT_EQ(plan.local_rows(step), static_cast<std::int64_t>(expected.size())) << division;
        if (plan.rows(step) == plan.batch_size) {
          EXPECT_EQ(plan.local_rows(step), plan.local_batch_size()) << division;
          EXPECT_GT(plan.own_rows(step).count(), 0) << division;
        }
        for (const std::int64_t position : expected)
          EXPECT_EQ(plan.global_position(local++), position) << division;
      }
      EXPECT_EQ(plan.local_positions(), local) << division;
    }
}

TEST(BatchPart, Default_IsTheWholeBatch) {
  constexpr BatchPlan plan{.samples = 103, .batch_size = 10};
  static_assert(plan.part.is_whole() && plan.local_batch_size() == 10 && plan.local_positions() == 103);
  static_assert(plan.local_rows(10) == 3 && plan.global_position(77) == 77);
  constexpr BatchPlan middle{
      .samples = 103, .batch_size = 10, .part = {.shards = 4, .own = {1, 3}, .previous_row = true}};
  static_assert(middle.own_rows(0) == IndexRange{2, 7} && middle.local_batch_size() == 6);
  static_assert(middle.own_rows(10) == IndexRange{0, 2} && middle.local_rows(10) == 3);
  static_assert(middle.global_position(6) == 11 && middle.global_position(60) == 102);
}

class BatchesOn : public testing::TestWithParam<Device> {};

TEST_P(BatchesOn, EveryDeviceHasTheSameOrder) {
  const BatchPlan plan{.samples = 1000, .batch_size = 32, .batches_per_epoch = 100, .seed = 5};
  EXPECT_EQ(order(plan, 7, 3, 3000, GetParam()), order(plan, 7, 3, 3000));
  const BatchPlan stored{.samples = 1000, .batch_size = 32, .seed = 5, .shuffle = false};
  EXPECT_EQ(order(stored, 7, 3, 990, GetParam()), order(stored, 7, 3, 990));
}

TEST_P(BatchesOn, Part_HasTheSamplesOfTheWholePlan) {
  for (const Division& division : divisions()) {
    const auto all = order(division.whole, 3, 0, division.whole.positions());
    for (const BatchPlan& plan : division.parts()) {
      std::vector<std::int32_t> expected;
      for (std::int64_t step = 0; step < plan.steps(); ++step)
        for (const std::int64_t position : local_rows_of(plan, step))
          expected.push_back(all[static_cast<std::size_t>(position)]);
      EXPECT_EQ(order(plan, 3, 0, plan.local_positions(), GetParam()), expected) << division;
      const std::int64_t first = plan.local_positions() / 2;
      expected.erase(expected.begin(), expected.begin() + first);
      EXPECT_EQ(order(plan, 3, first, plan.local_positions() - first, GetParam()), expected) << division;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchesOn, testing::ValuesIn(test_devices()), device_name);

TEST(Batches, CheckBatchPlan_SizesOutOfRange_Throws) {
  EXPECT_EQ(error_text([] { check_batch_plan({.samples = 0}); }),
            "[batches] expected 1 to 2147483647 samples, got 0");
  EXPECT_EQ(error_text([] { check_batch_plan({.samples = 5, .batch_size = 0}); }),
            "[batches] expected a batch size from 1 to 1048576, got 0");
}

TEST(Batches, CheckBatchPlan_PartOutOfRange_Throws) {
  const auto text = [](const BatchPart& part) {
    return error_text([&] { check_batch_plan({.samples = 50, .batch_size = 8, .part = part}); });
  };
  const BatchPart last{.shards = 8, .own = {7, 8}, .previous_row = true};
  EXPECT_NO_THROW(check_batch_plan({.samples = 50, .batch_size = 8, .part = last}));
  EXPECT_EQ(text({.shards = 0, .own = {0, 0}}), "[batches] expected at least 1 shard, got 0");
  EXPECT_EQ(text({.shards = 9, .own = {0, 9}}),
            "[batches] expected at most 8 shards, one per image of a batch, got 9");
  for (const IndexRange own : {IndexRange{0, 5}, {-1, 2}, {2, 2}, {3, 2}})
    EXPECT_EQ(text({.shards = 4, .own = own}),
              fmt::format("[batches] expected at least one of the shards 0 to 3, got [{}, {})", own.begin,
                          own.end));
  EXPECT_EQ(text({.shards = 4, .own = {0, 4}, .previous_row = true}),
            "[batches] expected a part of a batch with previous_row, got all 4 shards");
}

}  // namespace
}  // namespace tandem
