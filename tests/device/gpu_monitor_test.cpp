// On a library of the tests (fake_nvml.cpp): no GPU is needed.
#include "tandem/device/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tandem {
namespace {

constexpr const char* known = "GPU-01234567-89ab-cdef-0123-456789abcdef";

class GpuMonitorTest : public testing::Test {
 protected:
  ~GpuMonitorTest() override { ::unsetenv("TANDEM_FAKE_NVML"); }
  static void tell(const char* what) { ::setenv("TANDEM_FAKE_NVML", what, 1); }
  static std::string open_count() {
    const char* const count = std::getenv("TANDEM_FAKE_NVML_OPEN");
    return count ? count : "";
  }
};

TEST_F(GpuMonitorTest, Gpu_TellsItsUse) {
  {
    const GpuMonitor monitor(known, TANDEM_FAKE_NVML);
    EXPECT_EQ(open_count(), "1");
    EXPECT_EQ(monitor.use().busy_share, 0.87);
    EXPECT_EQ(monitor.use().memory_mb, 12500);
  }
  EXPECT_EQ(open_count(), "0");
}

TEST_F(GpuMonitorTest, FigureThatIsNotSupported_IsEmpty) {
  tell("no-rates");
  const GpuMonitor monitor(known, TANDEM_FAKE_NVML);
  EXPECT_FALSE(monitor.use().busy_share);
  EXPECT_EQ(monitor.use().memory_mb, 12500);
}

TEST_F(GpuMonitorTest, OtherGpuLibraryOrDriver_TellsNothing) {
  const auto tells_nothing = [](const char* uuid, const char* library) {
    const GpuUse use = GpuMonitor(uuid, library).use();
    return !use.busy_share && !use.memory_mb;
  };
  EXPECT_TRUE(tells_nothing("GPU-0", TANDEM_FAKE_NVML));
  EXPECT_EQ(open_count(), "0");
  EXPECT_TRUE(tells_nothing(known, "libtandem-no-such-library.so.1"));
  EXPECT_TRUE(tells_nothing(known, "libc.so.6"));  // without the functions
  tell("fails");
  EXPECT_TRUE(tells_nothing(known, TANDEM_FAKE_NVML));
  EXPECT_EQ(open_count(), "0");
}

}  // namespace
}  // namespace tandem
