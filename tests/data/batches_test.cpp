#include "tandem/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/core/error_text.h"
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

class BatchesOn : public testing::TestWithParam<Device> {};

TEST_P(BatchesOn, EveryDeviceHasTheSameOrder) {
  const BatchPlan plan{.samples = 1000, .batch_size = 32, .batches_per_epoch = 100, .seed = 5};
  EXPECT_EQ(order(plan, 7, 3, 3000, GetParam()), order(plan, 7, 3, 3000));
  const BatchPlan stored{.samples = 1000, .batch_size = 32, .seed = 5, .shuffle = false};
  EXPECT_EQ(order(stored, 7, 3, 990, GetParam()), order(stored, 7, 3, 990));
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchesOn, testing::ValuesIn(test_devices()), device_name);

TEST(Batches, CheckBatchPlan_SizesOutOfRange_Throws) {
  EXPECT_EQ(error_text([] { check_batch_plan({.samples = 0}); }),
            "[batches] expected 1 to 2147483647 samples, got 0");
  EXPECT_EQ(error_text([] { check_batch_plan({.samples = 5, .batch_size = 0}); }),
            "[batches] expected a batch size from 1 to 1048576, got 0");
}

}  // namespace
}  // namespace tandem
