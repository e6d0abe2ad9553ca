// Models exported to ONNX and computed by Tandem's own runner.
#include "tandem/train/export/export_onnx.h"

#include <gtest/gtest.h>

#include "tandem/augment/transform.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_runner.h"
#include "tandem/image/example_photo.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/pool.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/pow.h"
#include "tandem/ops/random.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/softmax.h"
#include "tandem/ops/unary.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/export/onnx_preprocessing.h"
#include "tandem/train/predict_images.h"
#include "tests/core/error_text.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

// Random running statistics: those of a new model would hide a wrong fold.
void randomize(Module& module) {
  std::uint64_t stream = 1;
  for (NamedTensor& buffer : module.buffers()) {
    if (buffer.tensor.dtype() != DType::f32) continue;
    const bool variance = buffer.name.ends_with("var");
    const NoGrad no_grad;
    const Tensor values = uniform(buffer.tensor.shape(), variance ? 0.5 : -0.5, variance ? 2.0 : 0.5,
                                  {.seed = 9, .stream = stream++});
    buffer.tensor *= 0.0;
    buffer.tensor += values;
  }
  module.invalidate_caches();
}

ModelInfo photo_info(const std::string& name, std::int64_t size, const std::string& transform = "resize") {
  return {.architecture = {.model = name, .channels = 3, .classes = 3},
          .classes = {"ash", "birch", "größe, 3"},
          .height = size,
          .width = size,
          .channels = 3,
          .norm = {.mean = {0.485f, 0.456f, 0.406f}, .stddev = {0.229f, 0.224f, 0.225f, 1}},
          .transform = transform,
          .data = "photos",
          .command = "tandem train photos"};
}

ModelInfo gray_info(const std::string& name) {
  ModelInfo info{.architecture = {.model = name, .channels = 1, .classes = 4},
                 .classes = {"a", "b", "c", "d"},
                 .height = 14,
                 .width = 12,
                 .channels = 1,
                 .norm = {.mean = {0.1f}, .stddev = {0.3f, 1, 1, 1}}};
  if (name == "mlp") info.architecture.layers = {14 * 12, 16, 4};
  return info;
}

Model make(const ModelInfo& info) {
  Model model{.info = info, .module = make_model(info.architecture, 3)};
  model.module->eval();
  randomize(*model.module);
  return model;
}

class ExportOnnx : public testing::Test {
 protected:
  // Verified with small images unless others are given.
  OnnxModel exported(Model& model, ExportOptions options = {}) {
    if (options.images.empty())
      options.images = {example_photo(50, 40), example_photo(20, 61), example_photo(33, 33)};
    const ExportReport report = export_onnx(model, folder_ / "m.onnx", options);
    EXPECT_EQ(report.same_class, report.images);
    max_difference_ = report.max_difference;
    return parse_onnx(get_bytes(folder_ / "m.onnx"), "m.onnx");
  }

  TempFolder folder_;
  double max_difference_ = 0;
};

TEST_F(ExportOnnx, EveryRegisteredModel_Agrees) {
  for (const ModelRow& row : models().rows()) {
    SCOPED_TRACE(row.name);
    Model model = make(row.flat_input ? gray_info(row.name) : photo_info(row.name, 33));
    for (const ExportInput input : {ExportInput::image, ExportInput::tensor}) {
      const OnnxModel onnx = exported(model, {.input = input});
      EXPECT_LE(max_difference_, 1e-5);
      EXPECT_EQ(onnx.opsets, (std::vector<std::pair<std::string, std::int64_t>>{{"", 18}}));
      EXPECT_EQ(onnx.graph.inputs[0].to_string(), input == ExportInput::image ? "u8 [height, width, 3]"
                                                  : row.flat_input            ? "f32 [batch, 1, 14, 12]"
                                                                              : "f32 [batch, 3, 33, 33]");
    }
  }
}

TEST_F(ExportOnnx, SmallModels_Agree) {
  for (const char* name : {"cnn", "lenet", "mlp"}) {
    Model model = make(gray_info(name));
    exported(model);
    EXPECT_LE(max_difference_, 1e-5) << name;
  }
  ModelInfo sigmoids = gray_info("mlp");
  sigmoids.architecture.loss = LossKind::mse;
  sigmoids.architecture.dropout = 0.5;
  Model model = make(sigmoids);
  exported(model);
  EXPECT_LE(max_difference_, 1e-5);
  ModelInfo color = gray_info("mlp");  // rows of interleaved channels
  color.channels = 3;
  color.architecture.layers = {14 * 12 * 3, 16, 4};
  Model rows = make(color);
  for (const ExportInput input : {ExportInput::image, ExportInput::tensor}) {
    exported(rows, {.input = input});
    EXPECT_LE(max_difference_, 1e-5);
  }
}

// The pixels that the graph computes, times 255: equal to the byte.
TEST(OnnxPreprocessing, Pixels_EqualTandemsToTheByte) {
  std::vector<ModelInfo> infos;
  for (const char* transform : {"resize", "center 40", "resize, bicubic", "center 50, bicubic", "letterbox",
                                "letterbox 114, bicubic"}) {
    infos.push_back(photo_info("cnn", 37, transform));
    infos.back().norm = {.mean = {0, 0, 0}, .stddev = {1, 1, 1, 1}};
  }
  infos.push_back(gray_info("mlp"));
  for (ModelInfo& info : infos) {
    OnnxBuilder builder;
    const std::string pixels = add_preprocessing(builder, info, "image");
    OnnxModel onnx{.graph = builder.graph};
    onnx.graph.inputs = {{.name = "image", .type = OnnxType::u8, .has_shape = false}};
    onnx.graph.outputs = {{.name = pixels, .type = OnnxType::f32, .has_shape = false}};
    for (const auto& [height, width] :
         {std::pair{1, 1}, {37, 37}, {74, 111}, {3, 90}, {200, 61}, {41, 40}, {500, 333}}) {
      SCOPED_TRACE(info.transform + " " + std::to_string(height) + "x" + std::to_string(width));
      Image image = example_photo(height, width);
      for (std::size_t i = 0; i < image.pixels.size(); i += 7) image.pixels[i] = i % 2 == 0 ? 0 : 255;
      const OnnxTensor result =
          run_onnx(onnx, {{"image",
                           {.type = OnnxType::u8,
                            .dims = {height, width, 3},
                            .data = std::string(image.pixels.begin(), image.pixels.end())}}})
              .at(pixels);
      const Tensor expected = model_pixels(info, image);  // (1, height, width, channels)
      const auto levels = expected.permute({0, 3, 1, 2}).to_vector<std::uint8_t>();
      ASSERT_EQ(result.count(), std::ssize(levels));
      for (std::size_t i = 0; i < levels.size(); ++i)
        ASSERT_EQ(std::lround(result.values<float>()[i] * 255), levels[i]) << i;
    }
  }
}

TEST_F(ExportOnnx, WithoutImages_RenderedOnesAreUsed) {
  Model model = make(photo_info("cnn", 16)), gray = make(gray_info("mlp"));
  for (Model* each : {&model, &gray}) {
    const ExportReport report = export_onnx(*each, folder_ / "m.onnx");
    EXPECT_EQ(report.images, 8);
    EXPECT_EQ(report.same_class, 8);
    EXPECT_LE(report.max_difference, 1e-5);
    EXPECT_EQ(report.bytes, std::filesystem::file_size(folder_ / "m.onnx"));
  }
}

TEST_F(ExportOnnx, Metadata_HasClassesAndPreprocessing) {
  Model model = make(photo_info("cnn", 16, "center 20"));
  const OnnxModel onnx = exported(model);
  EXPECT_EQ(onnx.metadata.at("tandem.classes"), R"(["ash","birch","größe, 3"])");
  EXPECT_EQ(onnx.metadata.at("tandem.transform"), "center 20");
  EXPECT_NE(onnx.metadata.at("tandem.preprocessing").find("shorter side resized to 20"), std::string::npos);
  EXPECT_TRUE(onnx.metadata.contains("tandem.version"));
  EXPECT_EQ(onnx.producer, "tandem");
  const auto is_name = [&](const char* name) {
    return std::ranges::any_of(onnx.graph.constants,
                               [&](const OnnxTensor& each) { return each.name == name; });
  };
  EXPECT_TRUE(is_name("conv1.weight") && is_name("fc.weight") && is_name("fc.bias"));
}

TEST_F(ExportOnnx, HalfWeights_AreSmallerAndClose) {
  Model model = make(photo_info("cnn", 16));
  exported(model);
  const auto full = std::filesystem::file_size(folder_ / "m.onnx");
  for (const ExportWeights weights : {ExportWeights::fp16, ExportWeights::bf16}) {
    const OnnxModel onnx = exported(model, {.weights = weights});
    EXPECT_GT(max_difference_, 0);
    EXPECT_LT(std::filesystem::file_size(folder_ / "m.onnx"), full * 6 / 10);
    const auto first = std::ranges::find(onnx.graph.constants, "conv1.weight", &OnnxTensor::name);
    EXPECT_EQ(first->type, weights == ExportWeights::fp16 ? OnnxType::f16 : OnnxType::bf16);
  }
}

TEST_F(ExportOnnx, DifferenceAboveTheTolerance_WritesNothing) {
  Model model = make(photo_info("cnn", 16));
  const std::string error = error_text(
      [&] { export_onnx(model, folder_ / "m.onnx", {.weights = ExportWeights::bf16, .tolerance = 0}); });
  EXPECT_NE(error.find("differs from the model by"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.onnx"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ExportOnnx, TransformWithRandomOperations_IsAnError) {
  Model model = make(photo_info("cnn", 16, "crop 0.5 1, flip 0.5"));
  EXPECT_NE(error_text([&] { export_onnx(model, folder_ / "m.onnx"); }).find("[export] expected a transform"),
            std::string::npos);
  EXPECT_NE(error_text([&] { export_onnx(model, "/nowhere/m.onnx"); }).find("/nowhere"), std::string::npos);
}

// A network that calls what the registered ones do not.
struct Odd : Module {
  Conv2d conv{3, 6, {.window = {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}}, .groups = 3}};
  BatchNorm first{3}, last{12};
  Linear output{12, 3};
  Odd() { add_children({{"conv", conv}, {"first", first}, {"last", last}, {"output", output}}); }
  Tensor forward(const Tensor& x) override {
    Tensor y = first.forward(x);  // without a convolution before it
    y = gelu(conv.forward(y));
    const Tensor gate = sigmoid(mean(y, {1, 2}, {.keep_axes = true}));
    y = concat(std::vector<Tensor>{multiply(y, gate), subtract(1.0, absolute(y))}, 3);
    y = avg_pool2d(y, {2, 3}, {.stride = {2, 2}, .padding = {1, 1}});
    y = adaptive_avg_pool2d(y, {3, 2});
    y = pow(add(square(tanh(y)), 0.5), 1.5);
    y = y.permute({0, 3, 1, 2}).reshape({y.size(0), 12, 6});
    y = max(softmax(y), {2});
    return output.forward(last.forward(y, {}, FusedActivation::relu));
  }
};

TEST_F(ExportOnnx, OwnModule_IsTraced) {
  Model model{.info = photo_info("cnn", 21), .module = std::make_unique<Odd>()};
  model.module->eval();
  randomize(*model.module);
  for (const ExportInput input : {ExportInput::image, ExportInput::tensor}) {
    exported(model, {.input = input});
    EXPECT_LE(max_difference_, 1e-5);
  }
}

struct Sliced : Module {
  Linear output{3, 3};
  Sliced() { add_child("output", output); }
  Tensor forward(const Tensor& x) override { return output.forward(mean(x, {1, 2}).slice(1, 0, 3)); }
};

// Tensor arithmetic that the tape does not see: verification finds it.
struct Hidden : Module {
  Linear output{3, 3};
  Hidden() { add_child("output", output); }
  Tensor forward(const Tensor& x) override {
    const Tensor means = mean(x, {1, 2});
    return add(output.forward(means), multiply(means.detach(), 5.0));
  }
};

TEST_F(ExportOnnx, WhatCannotBeExported_IsNamed) {
  Model sliced{.info = photo_info("cnn", 8), .module = std::make_unique<Sliced>()};
  sliced.module->eval();
  EXPECT_EQ(error_text([&] { export_onnx(sliced, folder_ / "m.onnx"); }),
            "[export] the network uses 'slice', which cannot be exported to ONNX");
  Model hidden{.info = photo_info("cnn", 8), .module = std::make_unique<Hidden>()};
  hidden.module->eval();
  const std::string error = error_text([&] { export_onnx(hidden, folder_ / "m.onnx"); });
  EXPECT_NE(error.find("[export]"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.onnx"));
}

}  // namespace
}  // namespace tandem
