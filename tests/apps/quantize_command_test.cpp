// A model in 8-bit integers made, evaluated, used and refused, as a program.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/train/model_file.h"
#include "tests/apps/photo_program_case.h"
#include "tests/train/classifier_models.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class QuantizeCommand : public PhotoProgramCase {
 protected:
  // A ResNet with random weights for the classes of the photographs.
  void SetUp() override {
    ModelInfo info = random_model_info("resnet18");
    info.architecture.classes = 2;
    info.classes = {"blue", "red"};
    save_model(folder_ / "m.safetensors", *make_model(info.architecture, 3), info);
  }
};

TEST_F(QuantizeCommand, Model_IsComparedAndUsed) {
  const ProgramResult made =
      run({"quantize", "m.safetensors", "photos", "-o", "small.safetensors", "--images", "6"});
  for (const char* const part : {"Ranges: ", ", 6 training images\n", "Accuracy on 4 test images: ",
                                 " in fp32, ", " in int8\n", "The same class: ", "small.safetensors: 11."})
    EXPECT_NE(made.out.find(part), std::string::npos) << part << "\n" << made.out;
  EXPECT_LT(4 * fs::file_size(folder_ / "small.safetensors"),
            fs::file_size(folder_ / "m.safetensors") + 500'000);

  const auto report =
      nlohmann::json::parse(run({"quantize", "m.safetensors", "photos", "-o", "second.safetensors",
                                 "--images", "6", "--method", "entropy", "--json"})
                                .out);
  EXPECT_EQ(report["method"], "entropy");
  EXPECT_EQ(report["calibration_images"], 6);
  EXPECT_EQ(report["test_images"], 4);
  EXPECT_LE(report["interval_after"][0].get<double>(), report["accuracy_after"].get<double>());

  const auto facts = nlohmann::json::parse(run({"inspect", "small.safetensors", "--json"}).out);
  EXPECT_EQ(facts["metadata"]["tandem.quantization"], "int8");
  EXPECT_NE(
      facts["metadata"]["tandem.quantization.command"].get<std::string>().find("quantize m.safetensors"),
      std::string::npos);
  const auto evaluation = nlohmann::json::parse(run({"eval", "small.safetensors", "photos", "--json"}).out);
  EXPECT_EQ(evaluation["images"], 14);
  EXPECT_TRUE(run({"predict", "small.safetensors", "photos"}).out.starts_with("path,class,probability,"));
}

TEST_F(QuantizeCommand, Model_IsExportedAsQdq) {
  run({"quantize", "m.safetensors", "photos", "-o", "small.safetensors", "--images", "6"});
  const ProgramResult made = run({"export", "small.safetensors", "-o", "x.onnx", "--images", "photos"});
  EXPECT_NE(made.out.find("Verified with 8 images: the same class for "), std::string::npos) << made.out;
  EXPECT_LT(4 * fs::file_size(folder_ / "x.onnx"), fs::file_size(folder_ / "m.safetensors") + 600'000);
  const auto quantize_nodes = [&](const char* file) {
    const auto facts = nlohmann::json::parse(run({"inspect", file, "--json"}).out);
    EXPECT_EQ(facts["metadata"]["tandem.quantization"], "int8");
    EXPECT_GT(facts["parameters"], 11'000'000);
    for (const auto& each : facts["operators"])
      if (each["name"] == "QuantizeLinear") return each["count"].get<int>();
    return 0;
  };
  EXPECT_EQ(quantize_nodes("x.onnx"), 22);  // of images, 20 convolutions and max pooling
  run({"export", "small.safetensors", "-o", "sums.onnx", "--integer-sums", "--input", "tensor"});
  EXPECT_EQ(quantize_nodes("sums.onnx"), 30);  // and of 8 operands of residual sums
}

TEST_F(QuantizeCommand, WrongInput_IsOneLine) {
  run({"quantize", "m.safetensors", "photos", "-o", "small.safetensors", "--images", "4"});
  expect_failure(1, {"quantize", "r", "photos", "-o", "x.safetensors"},
                 "[quantize] expected a ResNet (resnet18, resnet34, resnet50), got cnn");
  expect_failure(1, {"quantize", "small.safetensors", "photos", "-o", "x.safetensors"},
                 "[quantize] expected a model in floating point, got one in 8-bit integers");
  expect_failure(1, {"quantize", "m.safetensors", "photos", "-o", "x.onnx"},
                 "[quantize] x.onnx: expected a name that ends in .safetensors");
  expect_failure(1, {"quantize", "m.safetensors", "nowhere", "-o", "x.safetensors"},
                 "[quantize] expected plates or a folder of photographs, got 'nowhere'");
  expect_failure(
      2, {"quantize", "m.safetensors", "photos", "-o", "x.safetensors", "--method", "mean"},
      "--method: expected auto, percentile, entropy or max, got 'mean' (see tandem quantize --help)");
  expect_failure(2, {"quantize", "m.safetensors", "photos", "-o", "x.safetensors", "--images", "0"},
                 "--images: expected a whole number from 1 to 100000, got '0' (see tandem quantize --help)");
  expect_failure(
      1, {"export", "small.safetensors", "-o", "x.onnx", "--weights", "fp16"},
      "[export] expected a model in floating point for weights in fp16 or bf16, got one in 8-bit integers");
  expect_failure(1, {"export", "m.safetensors", "-o", "x.onnx", "--integer-sums"},
                 "[export] expected a model in 8-bit integers for integer sums, got one in floating point");
  expect_failure(
      1, {"explain", "small.safetensors", "photos", "-o", "x.png"},
      "[explain] expected a model in floating point, which has gradients, got one in 8-bit integers");
  const ProgramResult trained =
      run_program({"train", "photos", "--model", "resnet18", "--pretrained", "small.safetensors",
                   "--image-size", "32", "--epochs", "1", "--out", "t", "--device", "cpu", "--folds", "0"},
                  folder_.path());
  EXPECT_EQ(trained.status, 1);
  EXPECT_NE(
      trained.err.find("[train] small.safetensors: expected weights in floating point, got a model in 8-bit "
                       "integers, which cannot be trained"),
      std::string::npos)
      << trained.err;
  EXPECT_FALSE(fs::exists(folder_ / "x.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "x.onnx"));
}

}  // namespace
}  // namespace tandem
