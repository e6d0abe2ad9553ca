// MobileNetV3 and EfficientNet-B0 trained on a folder of photographs: the first loss, resuming with the same
// bits, model files with torchvision's names.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/fill.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/model_file.h"
#include "tandem/train/trainer.h"
#include "tests/core/error_text.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

class MobileRun : public testing::TestWithParam<std::string> {
 protected:
  MobileRun() {
    write_photos(folder_ / "photos", 13);
    options_ = default_options(GetParam(), {.photographs = true});
    options_.data = (folder_ / "photos").string();
    options_.image_size = 32;
    options_.epochs = 2;
    options_.batch_size = 6;  // four steps per epoch
    options_.workers = 0;
    options_.device = cpu_device;
    options_.pretrained = "none";
  }

  TrainResult run(const std::string& name, bool resume = false, const FitCallbacks& callbacks = {}) {
    options_.run_folder = folder_ / name;
    options_.resume = resume;
    return train(options_, callbacks);
  }

  TempFolder folder_;
  TrainOptions options_;
};

TEST_P(MobileRun, StoppedRun_ResumesWithTheSameBitsAndItsModelLoads) {
  const TrainResult whole = run("whole");
  EXPECT_LT(whole.epochs.front().train_loss, 3);  // log 2 = 0.69, and dropout
  int polls = 3;                                  // in the first epoch
  ASSERT_EQ(run("stopped", false, {.stop_signal = [&] { return --polls == 0 ? SIGTERM : 0; }}).stopped_by,
            SIGTERM);
  run("stopped", true);
  expect_same_weights(folder_ / "whole", folder_ / "stopped");
  const Model model = load_model(folder_ / "whole");
  EXPECT_EQ((*model.module)(ones({1, 32, 32, 3})).shape(), (Shape{1, 2}));
  for (const auto& [name, tensor] : read_safetensors(RunFolder{folder_ / "whole"}.best()).tensors)
    EXPECT_FALSE(name.ends_with(".step")) << name;
}

TEST_P(MobileRun, FrozenBackbone_TrainsTheLastLayerAlone) {
  options_.freeze = true;
  options_.freeze_bn = true;
  run("frozen");
  const Model trained = load_model(folder_ / "frozen");
  const auto start = make_model(trained.info.architecture, options_.seed);
  const auto& network = dynamic_cast<const BackboneModel&>(*start);
  const NamedTensors before = start->parameters(), after = trained.module->parameters();
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].tensor.detach().to_vector<float>() == after[i].tensor.detach().to_vector<float>(),
              !network.is_head(before[i].name))
        << before[i].name;
}

INSTANTIATE_TEST_SUITE_P(Models, MobileRun, testing::Values("mobilenet_v3_small", "efficientnet_b0"),
                         [](const auto& one) { return one.param; });

// A file of torchvision's: 1,000 classes, no counters of Tandem's.
TEST(MobileWeights, TorchvisionsFile_LoadsAllButTheLastLayer) {
  const TempFolder folder;
  for (const std::string name : {"mobilenet_v3_small", "efficientnet_b0"}) {
    SCOPED_TRACE(name);
    const std::string head = name == "efficientnet_b0" ? "classifier.1." : "classifier.3.";
    const auto source = make_model({.model = name, .channels = 3, .classes = 1000}, 9);
    const auto model = make_model({.model = name, .channels = 3, .classes = 3}, 1);
    NamedTensors file = source->state_dict();
    std::erase_if(file, [](const NamedTensor& one) { return one.name.ends_with(".step"); });
    write_safetensors(folder / "w.safetensors", {.metadata = {}, .tensors = file});
    load_weights(*model, folder / "w.safetensors");
    const NamedTensors from = source->parameters(), to = model->parameters();
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (from[i].tensor.rank() < 2) continue;
      EXPECT_EQ(from[i].tensor.detach().to_vector<float>() == to[i].tensor.detach().to_vector<float>(),
                !to[i].name.starts_with(head))
          << to[i].name;
    }
    EXPECT_NE(error_text([&] {
                load_weights(*model, folder / "w.safetensors", true);
              }).find(head + "weight (expected f32 [3, "),
              std::string::npos);
    file.pop_back();
    file.front().name = "features.0.0.wait";
    write_safetensors(folder / "w.safetensors", {.metadata = {}, .tensors = file});
    EXPECT_NE(error_text([&] {
                load_weights(*model, folder / "w.safetensors");
              }).find("missing: features.0.0.weight; unexpected: features.0.0.wait"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tandem
