// Models in 8-bit integers: made, stored, loaded and used; what is refused.
#include "tandem/train/quantize.h"

#include <gtest/gtest.h>

#include <limits>

#include "tandem/files/safetensors.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/train/classifier.h"
#include "tandem/train/explain/explain.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/predict.h"
#include "tests/core/error_text.h"
#include "tests/train/classifier_models.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class Quantize : public testing::Test {
 protected:
  void SetUp() override {
    write_photos(folder_ / "photos" / "train", 6);
    write_photos(folder_ / "photos" / "test", 4, 50);
    save_model(folder_ / "model.safetensors", *model().module, model().info);
  }

  Model& model() {
    if (!model_.module) {
      ModelInfo& info = model_.info;
      info = random_model_info("resnet18");
      info.architecture.classes = 2;
      info.classes = {"blue", "red"};
      model_.module = make_model(info.architecture, 3);
      model_.module->eval();
    }
    return model_;
  }
  std::string photos() const { return (folder_ / "photos").string(); }

  // The model in 8-bit integers, in a file.
  fs::path small() {
    const fs::path path = folder_ / "small.safetensors";
    if (fs::exists(path)) return path;
    const Model made = quantize_model(model(), photos(), {.images = 8, .command = "tandem quantize x y"});
    save_model(path, *made.module, made.info);
    return path;
  }
  // The same after a change of its contents.
  template <class F>
  fs::path changed(const F& change) {
    TensorFile file = read_safetensors(small());
    change(file);
    write_safetensors(folder_ / "changed.safetensors", file);
    return folder_ / "changed.safetensors";
  }
  static void set(TensorFile& file, const std::string& name, const Tensor& value) {
    for (NamedTensor& each : file.tensors)
      if (each.name == name) each.tensor = value;
  }
  template <class F>
  void expect_refused(const F& change, const std::string& part) {
    const fs::path path = changed(change);
    const std::string text = error_text([&] { load_model(path); });
    EXPECT_TRUE(text.find(path.string()) != text.npos && text.find(part) != text.npos) << text;
  }

  TempFolder folder_;
  Model model_;
};

TEST_F(Quantize, Model_IsStoredAndLoaded) {
  const Model made = quantize_model(model(), photos(), {.images = 8, .command = "tandem quantize x y"});
  ASSERT_TRUE(made.info.quantization);
  const QuantizationInfo& info = *made.info.quantization;
  EXPECT_EQ(info.calibration_images, 8);
  EXPECT_EQ(info.test_images, 8);
  EXPECT_GE(info.same_class, 0.75);
  EXPECT_NEAR(info.accuracy_after, info.accuracy_before, 1 - info.same_class + 1e-9);
  const fs::path path = folder_ / "small.safetensors";
  save_model(path, *made.module, made.info);
  EXPECT_LT(static_cast<double>(fs::file_size(path)),
            0.26 * static_cast<double>(fs::file_size(folder_ / "model.safetensors")));

  const std::map<std::string, std::string> metadata = read_safetensors(path).metadata;
  EXPECT_EQ(metadata.at("tandem.quantization"), "int8");
  EXPECT_EQ(metadata.at("tandem.quantization.test_images"), "8");
  EXPECT_NE(metadata.at("tandem.quantization.interval_after").find(','), std::string::npos);

  Model loaded = load_model(path);
  ASSERT_TRUE(loaded.info.quantization);
  EXPECT_EQ(loaded.info.quantization->method, info.method);
  EXPECT_EQ(loaded.info.quantization->command, "tandem quantize x y");
  EXPECT_EQ(loaded.info.quantization->accuracy_after, info.accuracy_after);
  EXPECT_EQ(loaded.info.accuracy, info.accuracy_after);
  const Tensor images = Tensor::from(std::vector<float>(2 * 32 * 32 * 3, 0.3f), {2, 32, 32, 3});
  EXPECT_EQ(loaded.module->forward(images).to_vector<float>(),
            made.module->forward(images).to_vector<float>());
}

TEST_F(Quantize, PredictAndClassifier_UseIt) {
  const fs::path path = small();
  Model loaded = load_model(path);
  const std::vector<Prediction> exact = predict_paths(model(), {photos() + "/test"}, {}),
                                rows = predict_paths(loaded, {photos() + "/test"}, {});
  ASSERT_EQ(rows.size(), 8u);
  const Classifier classifier(path);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].error, "");
    EXPECT_NEAR(rows[i].probabilities[0], exact[i].probabilities[0], 0.05f) << rows[i].path;
    const bool red = rows[i].path.find("/red/") != std::string::npos;
    const unsigned number = 50 + static_cast<unsigned>(i % 4);
    const Image image = tinted(red, number);
    EXPECT_EQ(classifier(ImageView(image)).probabilities, rows[i].probabilities) << rows[i].path;
  }
}

TEST_F(Quantize, PredictAndClassifierOnCuda_AgreeWithTheCpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  Model loaded = load_model(small());
  const std::vector<Prediction> expected = predict_paths(loaded, {photos() + "/test"}, {});
  loaded.module->to(cuda_device());
  const std::vector<Prediction> rows = predict_paths(loaded, {photos() + "/test"}, {});
  ASSERT_EQ(rows.size(), 8u);
  const Classifier classifier(small(), cuda_device());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].error, "");
    const Image image =
        tinted(rows[i].path.find("/red/") != std::string::npos, 50 + static_cast<unsigned>(i % 4));
    EXPECT_NEAR(rows[i].probabilities[0], expected[i].probabilities[0], 0.02f) << rows[i].path;
    EXPECT_NEAR(classifier(ImageView(image)).probabilities[0], expected[i].probabilities[0], 0.02f);
  }
}

TEST_F(Quantize, Methods_AreUsedAsAsked) {
  for (const char* const name : {"percentile", "entropy", "max"})
    EXPECT_EQ(quantize_model(model(), photos(), {.images = 4, .method = parse_calibration_method(name)})
                  .info.quantization->method,
              name);
  EXPECT_EQ(parse_calibration_method("auto"), std::nullopt);
  EXPECT_EQ(error_text([] { parse_calibration_method("mean"); }),
            "[quantize] expected auto, percentile, entropy or max, got 'mean'");
}

TEST_F(Quantize, OtherModels_AreRefused) {
  Model cnn{.info = random_model_info("cnn"), .module = nullptr};
  cnn.module = make_model(cnn.info.architecture, 1);
  const std::string text = error_text([&] { quantize_model(cnn, photos()); });
  EXPECT_TRUE(text.starts_with("[quantize] expected a ResNet (resnet18, resnet34, resnet50), got cnn"))
      << text;
  Model made = load_model(small());
  EXPECT_EQ(error_text([&] { quantize_model(made, photos()); }),
            "[quantize] expected a model in floating point, got one in 8-bit integers");
}

TEST_F(Quantize, WrongData_IsAnError) {
  EXPECT_EQ(error_text([&] { quantize_model(model(), photos(), {.images = 0}); }),
            "[quantize] expected at least 1 image, got 0");
  fs::create_directories(folder_ / "empty");
  EXPECT_NE(error_text([&] { quantize_model(model(), (folder_ / "empty").string()); }), "");
  EXPECT_EQ(error_text([&] { quantize_model(model(), "nowhere"); }),
            "[quantize] expected plates or a folder of photographs, got 'nowhere'");
}

TEST_F(Quantize, TrainingAndExplanation_AreRefused) {
  const fs::path path = small();
  Model loaded = load_model(path);
  const auto fresh = make_model(model().info.architecture, 1);
  EXPECT_EQ(
      error_text([&] { load_weights(*fresh, path); }),
      fmt::format("[train] {}: expected weights in floating point, got a model in 8-bit integers, which "
                  "cannot be trained",
                  path.string()));
  EXPECT_EQ(error_text([&] { load_model_into(*fresh, path); }),
            fmt::format("[model] {}: expected weights in floating point, got a model in 8-bit integers",
                        path.string()));
  EXPECT_EQ(error_text([&] { explain_paths(loaded, {photos()}, {}); }),
            "[explain] expected a model in floating point, which has gradients, got one in 8-bit integers");
}

TEST_F(Quantize, DamagedFiles_AreRefused) {
  expect_refused([](TensorFile& file) { file.metadata["tandem.quantization"] = "int4"; },
                 "expected int8 as tandem.quantization, got 'int4'");
  expect_refused([](TensorFile& file) { file.metadata["tandem.model"] = "cnn"; },
                 "expected a ResNet beside tandem.quantization, got cnn");
  expect_refused([](TensorFile& file) { file.metadata.erase("tandem.quantization.method"); },
                 "it has no tandem.quantization.method");
  expect_refused([](TensorFile& file) { file.metadata["tandem.quantization.accuracy_after"] = "nan"; },
                 "expected a number from 0 to 1 as tandem.quantization.accuracy_after, got 'nan'");
  expect_refused([](TensorFile& file) { file.metadata.erase("tandem.quantization"); }, "not the weights of");
  const auto pair = [](float scale, float zero) {
    return Tensor::from(std::vector<float>{scale, zero}, {2});
  };
  expect_refused([&](TensorFile& file) { set(file, "layer1.0.conv1.output", pair(0, 0)); },
                 "as layer1.0.conv1.output, got 0 and 0");
  expect_refused([&](TensorFile& file) { set(file, "conv1.output", pair(-0.5f, 0)); },
                 "as conv1.output, got -0.5 and 0");
  expect_refused(
      [&](TensorFile& file) {
        set(file, "layer4.1.conv2.output", pair(std::numeric_limits<float>::quiet_NaN(), 0));
      },
      "expected finite weights, got nan");
  expect_refused(
      [&](TensorFile& file) {
        set(file, "layer2.0.conv1.scale", Tensor::from(std::vector<float>(128, -1.0f), {128}));
      },
      "as layer2.0.conv1.scale, got -1");
  expect_refused([&](TensorFile& file) { set(file, "layer2.0.conv1.scale", pair(1, 1)); },
                 "layer2.0.conv1.scale");
  expect_refused([](TensorFile& file) { file.tensors.pop_back(); }, "not the weights of");
  expect_refused([&](TensorFile& file) { set(file, "images", pair(0.1f, 300)); },
                 "as images, got 0.1 and 300");
  expect_refused(
      [](TensorFile& file) {
        std::erase_if(file.tensors, [](const NamedTensor& each) { return each.name == "images"; });
      },
      "made by a version whose first convolution was in bf16: quantize the model again");

  const std::string whole = get_bytes(small());
  const fs::path cut = folder_ / "cut.safetensors";
  std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() / 2);
  EXPECT_NE(error_text([&] { load_model(cut); }).find(cut.string()), std::string::npos);
}

}  // namespace
}  // namespace tandem
