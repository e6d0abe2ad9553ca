// The error measure on synthetic weights, and the check itself on real steps: rounding passes, wrong steps do
// not.
#include "tandem/study/training_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

// The first tensor changes by a vector of length 5, the second by one of length 0.25.
const TrainedStep expected{.loss = 4, .before = {{1, 2, 3}, {0, 0}}, .after = {{4, 2, 7}, {0.25f, 0}}};

TEST(StepError, EqualWeights_GiveZero) {
  EXPECT_EQ(step_error(expected, expected), 0);
}

TEST(StepError, Error_IsRelativeToNormOfTheChange) {
  TrainedStep result = expected;
  result.after[0] = {4 + 0.3f, 2, 7 + 0.4f};  // by a vector of length 0.5
  EXPECT_NEAR(step_error(expected, result), 0.1, 1e-6);
  result.after[1][1] = 0.125f;
  EXPECT_EQ(step_error(expected, result), 0.5);
}

TEST(StepError, SkippedStep_GivesOne) {
  EXPECT_EQ(step_error(expected, {.loss = 4, .before = expected.before, .after = expected.before}), 1);
}

TEST(StepError, LossDifference_Counts) {
  TrainedStep result = expected;
  result.loss = 5;
  EXPECT_EQ(step_error(expected, result), 0.25);
}

TEST(StepError, NonFiniteValues_GiveInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t tensor : {0u, 1u}) {
    TrainedStep result = expected;
    result.after[tensor][0] = nan;
    EXPECT_TRUE(std::isinf(step_error(expected, result)));
  }
  TrainedStep result = expected;
  result.loss = static_cast<double>(nan);
  EXPECT_TRUE(std::isinf(step_error(expected, result)));
  TrainedStep unchanged = expected;
  unchanged.after = unchanged.before;
  EXPECT_TRUE(std::isinf(step_error(unchanged, expected)));
}

Weights with_last_bits_changed(Weights weights) {
  std::uint32_t state = 1;
  for (std::vector<float>& tensor : weights)
    for (float& value : tensor) {
      state = state * 1664525u + 1013904223u;
      const float towards = (state >> 16) % 2 ? 1e30f : -1e30f;
      if (value != 0) value = std::nextafter(value, towards);
    }
  return weights;
}

class TrainingCheck : public testing::Test {
 protected:
  static CaseTraining unfused(const char* name, std::uint64_t seed) {
    return {parse_training_case(name), random_training_images(seed), seed, CaseTraining::EngineKind::unfused};
  }
};

// What a GPU does to the CNN of the study: other rounding. Compared after three steps with the maximum of the
// differences, as it once was, this gives 0.03 to 0.16.
TEST_F(TrainingCheck, CnnWithOtherRounding_IsWithinTolerance) {
  for (const std::uint64_t seed : {1u, 2u}) {
    CaseTraining reference = unfused("cnn batch 128", seed);
    const TrainedStep right = reference.run_step(0);
    const TrainedStep rounded = reference.run_step(0, with_last_bits_changed(right.before));
    const double error = step_error(right, rounded);
    EXPECT_GT(error, 0);
    EXPECT_LT(error, step_tolerance({}) / 2) << "seed " << seed;
  }
}

TEST_F(TrainingCheck, OtherSamples_AreFound) {
  CaseTraining reference = unfused("cnn batch 128", 1);
  const TrainedStep right = reference.run_step(0);
  CaseTraining shorter = unfused("cnn batch 127", 1);  // the same samples without the last
  EXPECT_GT(step_error(right, shorter.run_step(0, right.before)), step_tolerance({}));
}

TEST_F(TrainingCheck, EveryStep_StartsFromTheWeightsOfTheDevice) {
  CaseTraining training(parse_training_case("784,20,10 batch 100"), random_training_images(3), 3);
  CaseTraining reference = unfused("784,20,10 batch 100", 3);
  EXPECT_LT(training_error(training, reference), 1e-4);
  // A reference that is elsewhere does not matter: it is set to the weights of the device.
  CaseTraining other = unfused("784,20,10 batch 100", 3);
  for (int step = 0; step < 5; ++step) other.run_step(step);
  CaseTraining again(parse_training_case("784,20,10 batch 100"), random_training_images(3), 3);
  EXPECT_LT(training_error(again, other), 1e-4);
}

}  // namespace
}  // namespace tandem
