#include "tandem/train/pretrained.h"

#include <gtest/gtest.h>

#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/training_state.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

std::unique_ptr<Module> small_model(std::int64_t classes, std::uint64_t seed) {
  return make_model({.model = "cnn", .channels = 3, .classes = classes}, seed);
}

TEST(StartingWeights, Auto_FallsBackToRandomWeights) {
  TrainOptions options;
  options.model = "resnet18";
  const WeightsFetcher works = [](const std::string& model) { return model + ".pth"; };
  const WeightsFetcher fails = [](const std::string&) -> std::filesystem::path {
    fail("[fetch] no network");
  };
  EXPECT_TRUE(find_starting_weights(options, fails).file.empty());
  EXPECT_TRUE(find_starting_weights(options, fails).problem.empty());
  options.pretrained = "mine.pth";
  EXPECT_EQ(find_starting_weights(options, fails).file, "mine.pth");
  options.pretrained = "auto";
  EXPECT_EQ(find_starting_weights(options, works).file, "resnet18.pth");
  EXPECT_TRUE(find_starting_weights(options, fails).file.empty());
  EXPECT_EQ(find_starting_weights(options, fails).problem, "[fetch] no network");
}

TEST(StartingWeights, RandomWeightsLine_DependsOnTheNumberOfImages) {
  EXPECT_EQ(
      random_weights_line("resnet18", 34),
      "Weights: random, because the ImageNet weights of resnet18 could not be fetched; 34 images are too "
      "few to learn a resnet18 from scratch: expect a much lower accuracy than with pretrained weights");
  EXPECT_NE(random_weights_line("resnet18", 5000).find("with 5,000 images expect a lower accuracy"),
            std::string::npos);
  EXPECT_NE(random_weights_line("resnet18", 100000).find("100,000 images can train it"), std::string::npos);
}

TEST(Precision, Auto_IsTf32ForConvolutionsOnAGpu) {
  const auto cnn = small_model(2, 1);
  const auto mlp = make_model({.model = "mlp", .layers = {4, 3, 2}}, 1);
  FitOptions options;
  EXPECT_EQ(precision_for(options, *cnn, cuda_device()), MatmulPrecision::tf32);
  EXPECT_EQ(precision_for(options, *cnn, cpu_device), MatmulPrecision::fp32);
  EXPECT_EQ(precision_for(options, *mlp, cuda_device()), MatmulPrecision::fp32);
  options.precision = MatmulPrecision::fp32;
  EXPECT_EQ(precision_for(options, *cnn, cuda_device()), MatmulPrecision::fp32);
  options.precision = MatmulPrecision::bf16;
  EXPECT_EQ(precision_for(options, *mlp, cuda_device()), MatmulPrecision::bf16);
}

}  // namespace
}  // namespace tandem
