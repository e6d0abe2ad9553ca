// The stages of backbones: every parameter belongs to one, and the first ones can be frozen.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tandem/nn/architecture.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/model_registry.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

std::unique_ptr<Module> model_named(const std::string& name) {
  return make_model({.model = name, .channels = 3, .classes = 3}, 1);
}

TEST(Stages, EveryModel_HasParametersInEveryStageInOrder) {
  const std::map<std::string, std::int64_t> expected{{"lenet", 3},
                                                     {"cnn", 3},
                                                     {"whitened_cnn", 3},
                                                     {"resnet18", 4},
                                                     {"resnet34", 4},
                                                     {"resnet50", 4},
                                                     {"efficientnet_b0", 7},
                                                     {"mobilenet_v3_small", 5},
                                                     {"mobilenet_v3_large", 5}};
  for (const auto& [name, count] : expected) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Module> module = model_named(name);
    const auto& model = dynamic_cast<const BackboneModel&>(*module);
    EXPECT_EQ(model.stage_count(), count);
    std::vector<std::int64_t> stages;
    for (const NamedTensor& parameter : model.parameters()) stages.push_back(model.stage_of(parameter.name));
    EXPECT_TRUE(std::ranges::is_sorted(stages));
    stages.erase(std::ranges::unique(stages).begin(), stages.end());
    EXPECT_EQ(std::ssize(stages), model.stage_count() + 1);
    EXPECT_EQ(stages.front(), 0);
    EXPECT_EQ(stages.back(), model.stage_count());
  }
}

TEST(Stages, OfResNet_AreItsLayers) {
  const std::unique_ptr<Module> module = model_named("resnet18");
  auto& model = dynamic_cast<BackboneModel&>(*module);
  for (const auto& [name, stage] : std::map<std::string, std::int64_t>{{"conv1.weight", 0},
                                                                       {"bn1.bias", 0},
                                                                       {"layer1.1.conv2.weight", 0},
                                                                       {"layer2.0.downsample.0.weight", 1},
                                                                       {"layer4.1.bn2.weight", 3},
                                                                       {"fc.weight", 4}})
    EXPECT_EQ(model.stage_of(name), stage) << name;
  model.freeze_stages(2);
  for (const auto& [name, tensor] : model.parameters())
    EXPECT_EQ(tensor.requires_grad(), model.stage_of(name) >= 2) << name;
  EXPECT_FALSE(model.is_backbone_frozen());
  model.freeze_stages(4);
  EXPECT_TRUE(model.is_backbone_frozen());
  for (const std::int64_t count : {-1, 5})
    EXPECT_EQ(error_text([&] { model.freeze_stages(count); }),
              "[freeze] expected 0 to 4 stages, as many as the model has, got " + std::to_string(count));
}

}  // namespace
}  // namespace tandem
