#include "tandem/train/pretrained.h"

#include <gtest/gtest.h>

#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/training_state.h"
#include "tests/train/shipped_file.h"

namespace tandem {
namespace {

std::unique_ptr<Module> small_model(std::int64_t classes, std::uint64_t seed) {
  return make_model({.model = "cnn", .channels = 3, .classes = classes}, seed);
}

std::filesystem::path no_network(const std::string&) {
  fail("[fetch] no network");
}

TEST(ChosenWeights, Auto_IsTheFirstThatIsThere) {
  const ShippedFile file;
  TrainOptions options{.model = "resnet18", .pretrained = "auto"};
  const WeightsFetcher works = [](const std::string& model) { return model + ".pth"; };
  EXPECT_EQ(choose_weights(options, works).name, "imagenet");
  ChosenWeights chosen = choose_weights(options, no_network);
  EXPECT_EQ(chosen.name, "none");
  EXPECT_EQ(chosen.problem, "[fetch] no network");
  file.write({.metadata = {}, .tensors = {}});
  EXPECT_EQ(choose_weights(options, works).name, "imagenet");
  EXPECT_TRUE(choose_weights(options, works).problem.empty());
  chosen = choose_weights(options, no_network);
  EXPECT_EQ(chosen.name, "scenes");
  EXPECT_EQ(chosen.problem, "[fetch] no network");
  options.model = "resnet34";
  EXPECT_EQ(choose_weights(options, no_network).name, "none");
}

TEST(ChosenWeights, OthersThanAuto_StayAndNameTheirFile) {
  const ShippedFile file;
  TrainOptions options{.model = "resnet18"};
  const WeightsFetcher works = [](const std::string& model) { return model + ".pth"; };
  for (const char* const name : {"none", "imagenet", "scenes", "mine.pth"}) {
    options.pretrained = name;
    EXPECT_EQ(choose_weights(options, no_network).name, name);
  }
  EXPECT_EQ(find_weights(options, no_network), "mine.pth");
  options.pretrained = "none";
  EXPECT_TRUE(find_weights(options, no_network).empty());
  options.pretrained = "imagenet";
  EXPECT_EQ(find_weights(options, works), "resnet18.pth");
  EXPECT_EQ(error_text([&] { find_weights(options, no_network); }), "[fetch] no network");
  options.pretrained = "scenes";
  EXPECT_NE(error_text([&] { find_weights(options, works); }).find("found none"), std::string::npos);
  file.write({.metadata = {}, .tensors = {}});
  EXPECT_EQ(find_weights(options, no_network), file.path());
}

TEST(ChosenWeights, FallbackLine_DependsOnTheNumberOfImages) {
  const ChosenWeights random{.name = "none", .problem = "x"};
  EXPECT_EQ(
      fallback_line("resnet18", random, 34),
      "Weights: random, because the ImageNet weights of resnet18 could not be fetched; 34 images are too "
      "few to learn a resnet18 from scratch: expect a much lower accuracy than with pretrained weights");
  EXPECT_NE(fallback_line("resnet18", random, 5000).find("with 5,000 images expect a lower accuracy"),
            std::string::npos);
  EXPECT_NE(fallback_line("resnet18", random, 100000).find("100,000 images can train it"), std::string::npos);
  EXPECT_EQ(fallback_line("resnet18", {.name = "scenes", .problem = "x"}, 34),
            "The ImageNet weights of resnet18 could not be fetched");
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
