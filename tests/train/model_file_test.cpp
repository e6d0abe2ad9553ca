#include "tandem/train/model_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "tandem/files/safetensors.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

ModelInfo small_info() {
  return {.architecture = {.layers = {6, 4, 2},
                           .activation = Activation::tanh,
                           .loss = LossKind::mse,
                           .dropout = 0.25},
          .classes = {"T-shirt, \"top\"", "größe"},
          .height = 2,
          .width = 3,
          .channels = 1,
          .pixel_scale = 0.1f,
          .data = "digits",
          .command = "tandem train 'x y'",
          .epoch = 7,
          .accuracy = 0.1 + 0.2};
}

TEST(ModelFile, SavedModel_RoundTrips) {
  const TempFolder folder;
  const ModelInfo info = small_info();
  const std::unique_ptr<Module> module = make_model(info.architecture, 5);
  save_model(folder / "m.safetensors", *module, info);
  const Model model = load_model(folder / "m.safetensors");
  EXPECT_EQ(model.info.architecture.to_string(), "mlp 6,4,2 tanh");
  EXPECT_EQ(model.info.architecture.loss, LossKind::mse);
  EXPECT_EQ(model.info.architecture.dropout, 0.25);
  EXPECT_EQ(model.info.classes, info.classes);
  EXPECT_EQ(model.info.height * 100 + model.info.width * 10 + model.info.channels, 231);
  EXPECT_EQ(model.info.pixel_scale, 0.1f);
  EXPECT_EQ(model.info.data, "digits");
  EXPECT_EQ(model.info.command, info.command);
  EXPECT_EQ(model.info.epoch, 7);
  EXPECT_EQ(model.info.accuracy, info.accuracy);
  EXPECT_FALSE(model.module->is_training());
  const NamedTensors before = module->state_dict(), after = model.module->state_dict();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].name, after[i].name);
    if (before[i].tensor.dtype() == DType::f32) {
      EXPECT_EQ(before[i].tensor.to_vector<float>(), after[i].tensor.to_vector<float>());
    }
  }
}

TEST(ModelFile, WeightsThatAreNotFinite_AreRefused) {
  const TempFolder folder;
  const ModelInfo info = small_info();
  const std::unique_ptr<Module> module = make_model(info.architecture, 5);
  module->state_dict().front().tensor.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  save_model(folder / "m.safetensors", *module, info);
  const std::string text = "[weights] " + (folder / "m.safetensors").string() +
                           ": expected finite weights, got nan at element 2 of tensor '0.weight'";
  EXPECT_EQ(error_text([&] { load_model(folder / "m.safetensors"); }), text);
  EXPECT_EQ(error_text([&] { load_model_into(*module, folder / "m.safetensors"); }), text);
}

TEST(ModelFile, FolderWithoutModel_IsAnError) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { load_model(folder.path()); }),
            "[model] " + folder.path().string() +
                ": expected a model file or the folder of a run, got a folder without best.safetensors and "
                "last.ckpt");
}

TEST(ModelFile, InconsistentMetadata_IsAnError) {
  const TempFolder folder;
  const ModelInfo info = small_info();
  save_model(folder / "m.safetensors", *make_model(info.architecture, 5), info);
  const TensorFile good = read_safetensors(folder / "m.safetensors");
  const std::string name = (folder / "bad").string();
  const auto error_with = [&](const std::string& key, const std::string& value) {
    TensorFile bad = good;
    bad.metadata[key] = value;
    write_safetensors(folder / "bad", bad);
    return error_text([&] { load_model(folder / "bad"); });
  };
  EXPECT_EQ(error_with("tandem.layers", "6,5,2"),
            "[model] " + name +
                ": expected the 40 weights of mlp 6,5,2 tanh, got 32: 0.weight [4, 6], "
                "0.bias [4], 3.weight [2, 4], 3.bias [2]");
  EXPECT_EQ(error_with("tandem.dropout", "0").substr(0, 60 + name.size()),
            ("[model] " + name + ": not the weights of mlp 6,4,2 tanh: [load_state_dict] expected the 4 ")
                .substr(0, 60 + name.size()));
  EXPECT_EQ(error_with("tandem.layers", "6,4,99999999999"),
            "[model] " + name + ": expected a number from 1 to 16777216 as tandem.layers, got '99999999999'");
  EXPECT_EQ(error_with("tandem.image", "2,2,1"),
            "[model] " + name + ": expected layers from 2,2,1 pixels to 2 classes, got 6,4,2");
  EXPECT_EQ(error_with("tandem.classes", "[1]"),
            "[model] " + name + ": expected a list of names as tandem.classes");
  EXPECT_EQ(
      error_with("tandem.activation", "swish"),
      "[model] " + name + ": expected one of " + activations().list() + " as tandem.activation, got 'swish'");
  EXPECT_EQ(error_with("tandem.format", "2"), "[model] " + name + ": expected format 1, got '2'");
  write_safetensors(folder / "bad", {.metadata = {}, .tensors = good.tensors});
  EXPECT_EQ(error_text([&] { load_model(folder / "bad"); }),
            "[model] " + name + ": not a model file of Tandem: it has no tandem.format");
}

}  // namespace
}  // namespace tandem
