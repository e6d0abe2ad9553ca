#include "tandem/train/warm_start.h"

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

TEST(WarmStart, TheCpuIsAwake) {
  EXPECT_FALSE(begin_to_wake({.device = "cpu"}).valid());
}

TEST(WarmStart, AGpuThatIsNotThereIsNoErrorYet) {
  std::future<void> waking = begin_to_wake({.device = "cuda:99"});
  ASSERT_EQ(waking.valid(), has_cuda);
  if (!has_cuda) return;
  waking.wait();
  EXPECT_THROW(waking.get(), Error);
}

TEST(WarmStart, WhatAutoMayChooseIsWokenWhereItIs) {
  std::future<void> waking = begin_to_wake({.model = "resnet18", .device = "auto"});
  if (waking.valid()) waking.get();
}

TEST(WarmStart, WakesTheLibrariesInEveryPrecision_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  for (const MatmulPrecision precision :
       {MatmulPrecision::fp32, MatmulPrecision::tf32, MatmulPrecision::bf16})
    for (const char* const model : {"mlp", "resnet18"})
      begin_to_wake({.model = model, .device = "cuda", .precision = precision}).get();
}

}  // namespace
}  // namespace tandem
