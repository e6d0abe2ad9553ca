#include "tandem/train/warm_start.h"

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

TEST(WarmStart, Cpu_NothingToInitialize) {
  EXPECT_FALSE(start_warm_up({.device = cpu_device}, true).valid());
}

TEST(WarmStart, MissingGpu_ErrorIsDeferredToGet) {
  std::future<void> warm_up = start_warm_up({.device = cuda_device(99)}, true);
  ASSERT_EQ(warm_up.valid(), has_cuda);
  if (!has_cuda) return;
  warm_up.wait();
  EXPECT_THROW(warm_up.get(), Error);
}

TEST(WarmStart, AutoDevice_InitializesWithoutErrorOnAnyMachine) {
  std::future<void> warm_up = start_warm_up({}, true);
  ASSERT_EQ(warm_up.valid(), has_cuda);
  if (!has_cuda) return;
  EXPECT_NO_THROW(warm_up.get());
}

TEST(WarmStart, EveryPrecision_InitializesLibraries_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  for (const MatmulPrecision precision :
       {MatmulPrecision::fp32, MatmulPrecision::tf32, MatmulPrecision::bf16})
    for (const bool convolves : {false, true})
      EXPECT_NO_THROW(start_warm_up({.device = cuda_device(), .precision = precision}, convolves).get())
          << convolves;
}

}  // namespace
}  // namespace tandem
