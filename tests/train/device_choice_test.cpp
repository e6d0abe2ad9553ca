#include "tandem/train/device_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>

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
    EXPECT_NE(choice.reason.find(" samples/s; "), std::string::npos) << choice.reason;
    EXPECT_NE(choice.reason.find(other + " would do "), std::string::npos) << choice.reason;
  }
}

TEST(DeviceChoice, Rates_HaveThreeDigitsAndOneUnit) {
  EXPECT_EQ(format_rate(212345), "212,000");
  EXPECT_EQ(format_rate(9876543), "9,880,000");
  EXPECT_EQ(format_rate(980.4), "980");
  EXPECT_EQ(format_rate(18.4321), "18.4");
  EXPECT_EQ(format_rate(1.5), "1.50");
}

// Starting processes takes longer than the measurement: their rate is measured with threads.
TEST(DeviceChoice, ProcessWorkers_AreNotStartedToBeMeasured) {
  TrainOptions options{.layers = {784, 8, 10}};
  options.device = cpu_device;
  options.transform = Transform::parse("digits");
  options.worker_kind = WorkerKind::process;
  setenv("SLURM_CPUS_PER_TASK", "32", 1);
  const DeviceChoice choice = choose_device(options, make_digits(50, 1));
  unsetenv("SLURM_CPUS_PER_TASK");
  EXPECT_NE(choice.reason.find("cpu with 32 workers"), std::string::npos) << choice.reason;
  // This program has no worker command: processes could not be measured.
  EXPECT_EQ(choice.reason.find("cannot"), std::string::npos) << choice.reason;
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
