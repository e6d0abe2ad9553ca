#include "tandem/device/device.h"

#include <gtest/gtest.h>

#include "tandem/device/on_backend.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Device, ToString_NamesBackendAndIndex) {
  EXPECT_EQ(cpu_device.to_string(), "cpu");
  EXPECT_EQ(cuda_device().to_string(), "cuda:0");
  EXPECT_EQ(cuda_device(3).to_string(), "cuda:3");
  EXPECT_NE(cpu_device, cuda_device());
  EXPECT_EQ(parse_device("cpu"), cpu_device);
  EXPECT_EQ(default_device(), cuda_device_count() > 0 ? cuda_device() : cpu_device);
}

TEST(Device, ParseDevice_UnknownName_Throws) {
  for (const char* text :
       {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"})
    EXPECT_EQ(error_text([&] { parse_device(text); }),
              std::string("expected a device such as cpu, cuda or cuda:1, got '") + text + "'");
}

TEST(Device, NoGpu_ErrorGivesTheReason) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(why_no_cuda().empty());
  EXPECT_EQ(error_text([] { parse_device("cuda"); }),
            "device cuda:0 is not available: " + why_no_cuda() + "; use cpu instead");
  EXPECT_EQ(error_text([] { require_available(cuda_device(2)); }),
            "device cuda:2 is not available: " + why_no_cuda() + "; use cpu instead");
  EXPECT_NO_THROW(require_available(cpu_device));
}

TEST(Device, BuildWithoutCuda_ErrorNamesTheOperation) {
  if (has_cuda) GTEST_SKIP() << "this build has CUDA";
  EXPECT_EQ(why_no_cuda(), "this build of Tandem has no CUDA");
  EXPECT_EQ(error_text([] { on_backend(cuda_device(), "relu", []<Backend B>() {}); }),
            "[relu] this build of Tandem has no CUDA");
}

TEST(Device, ParseDevice_ChecksTheIndex_cuda) {
  const int count = cuda_device_count();
  if (count == 0) GTEST_SKIP() << why_no_cuda();
  EXPECT_EQ(parse_device("cuda"), cuda_device());
  EXPECT_EQ(parse_device("cuda:0"), cuda_device());
  EXPECT_TRUE(why_no_cuda().empty());
  const std::string beyond = "cuda:" + std::to_string(count);
  EXPECT_NE(error_text([&] { parse_device(beyond); }).find("this machine has"), std::string::npos);
}

TEST(Device, OnBackend_CallsTheBackendOfTheDevice) {
  EXPECT_EQ(on_backend(cpu_device, "test", []<Backend B>() { return B; }), Backend::cpu);
}

}  // namespace
}  // namespace tandem
