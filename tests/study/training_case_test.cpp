// Parsing of devices-study cases and their operation counts.
#include "tandem/study/training_case.h"

#include <gtest/gtest.h>

#include "tandem/nn/cnn.h"
#include "tandem/study/studies.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(TrainingCase, ValidText_GivesLayersAndBatch) {
  const TrainingCase parsed = parse_training_case("784,1024,512,10 batch 128");
  EXPECT_EQ(parsed.layers, (std::vector<std::int64_t>{784, 1024, 512, 10}));
  EXPECT_EQ(parsed.batch_size, 128);
  EXPECT_EQ(parsed.network(), "784,1024,512,10");
  EXPECT_EQ(parsed.name(), "784,1024,512,10 batch 128");
  EXPECT_EQ(parse_training_case("784,10 batch 60000").layers.size(), 2u);
}

TEST(TrainingCase, Counts_WeightsAndOperations) {
  const TrainingCase parsed = parse_training_case("784,200,10 batch 16");
  EXPECT_EQ(parsed.weights(), 158800);
  // Forward and gradient of the weights in both layers, gradient of the inputs in the second only.
  EXPECT_EQ(parsed.operations(), 2 * (156800 * 2 + 2000 * 3));
}

TEST(TrainingCase, Cnn_CountsMatchTheModel) {
  const TrainingCase parsed = parse_training_case("cnn batch 128");
  EXPECT_TRUE(parsed.is_convolutional());
  EXPECT_EQ(parsed.name(), "cnn batch 128");
  double weights = 0;
  for (const NamedTensor& each : Cnn({.classes = 10}).parameters())
    if (each.tensor.rank() > 1) weights += static_cast<double>(each.tensor.numel());
  EXPECT_EQ(parsed.weights(), weights);
  const double first = 9.0 * 32 * 784,
               others =
                   9.0 * (32 * 32 * 784 + (32 * 64 + 64 * 64) * 196 + (64 * 128 + 128 * 128) * 49) + 1280;
  EXPECT_EQ(parsed.operations(), 2 * (2 * first + 3 * others));
}

TEST(TrainingCase, InvalidText_ThrowsWithExpected) {
  for (const char* text : {"",
                           "784",
                           "784,200,10",
                           "784,200,10 batch",
                           "784,200,10 batch ",
                           "784 batch 16",
                           "784,,10 batch 16",
                           "784,0,10 batch 16",
                           "784,-1,10 batch 16",
                           "784,200,10, batch 16",
                           "784,200,10 batch 0",
                           "784,200,10 batch 16 ",
                           " 784,200,10 batch 16",
                           "784,200,10  batch 16",
                           "784,200,10 batch 1e3",
                           "784x200 batch 16",
                           "cnn",
                           "cnn batch x",
                           "cnn,10 batch 16",
                           "784,99999999999999999999,10 batch 16"})
    EXPECT_EQ(
        error_text([&] { parse_training_case(text); }),
        "[study devices] expected a case such as \"784,200,10 batch 16\", got \"" + std::string(text) + "\"");
  EXPECT_EQ(error_text([] { parse_training_case("780,200,10 batch 16"); }),
            "[study devices] expected layers from 784 pixels to 10 classes, got 780,200,10");
  EXPECT_EQ(error_text([] { parse_training_case("784,200,11 batch 16"); }),
            "[study devices] expected layers from 784 pixels to 10 classes, got 784,200,11");
  EXPECT_EQ(error_text([] { parse_training_case("784,200,10 batch 60001"); }),
            "[study devices] expected a batch size from 1 to 60000, got 60001");
}

TEST(JoinCases, PartWithoutSpace_IsContinued) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(join_cases({}), Words{});
  EXPECT_EQ(join_cases({"9x9 f32", "3x3 f64"}), (Words{"9x9 f32", "3x3 f64"}));
  EXPECT_EQ(join_cases({"784", "32", "10 batch 16", "784", "10 batch 1"}),
            (Words{"784,32,10 batch 16", "784,10 batch 1"}));
  EXPECT_EQ(join_cases({"9x9 f32", "784", "10"}), (Words{"9x9 f32", "784,10"}));
}

}  // namespace
}  // namespace tandem
