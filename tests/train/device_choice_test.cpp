#include "tandem/train/device_choice.h"

#include <gtest/gtest.h>

#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(DeviceChoice, Auto_GivesReasonWithRates) {
  const ImageSet images = make_digits(50, 1);
  const DeviceChoice choice = choose_device(TrainOptions{.layers = {784, 8, 10}}, images);
  if (cuda_device_count() == 0) {
    EXPECT_EQ(choice.device, cpu_device);
    EXPECT_EQ(choice.reason, "no CUDA device: " + why_no_cuda());
  } else {
    const std::string other = choice.device == cpu_device ? "cuda:0" : "cpu";
    EXPECT_NE(choice.reason.find(" M samples/s; "), std::string::npos) << choice.reason;
    EXPECT_NE(choice.reason.find(other + " would do "), std::string::npos) << choice.reason;
  }
}

TEST(DeviceChoice, NamedDevice_IsUsed) {
  const ImageSet images = make_digits(50, 1);
  TrainOptions options;
  options.device = cpu_device;
  EXPECT_EQ(choose_device(options, images).device, cpu_device);
  options.device = cuda_device(cuda_device_count());
  EXPECT_NE(error_text([&] { choose_device(options, images); }).find("is not available"), std::string::npos);
}

}  // namespace
}  // namespace tandem
