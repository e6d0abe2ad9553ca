// Models in 8-bit integers exported to ONNX: where the graph rounds, and that it rounds as Tandem does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_runner.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/ops/conv/quantized_conv.h"
#include "tandem/ops/conv/quantized_images.h"
#include "tandem/ops/random.h"
#include "tandem/train/export/export_onnx.h"
#include "tandem/train/export/onnx_quantized_network.h"
#include "tests/core/error_text.h"
#include "tests/files/test_files.h"
#include "tests/train/classifier_models.h"

namespace tandem {
namespace {

constexpr std::int64_t image_size = 48;

// A model in 8-bit integers with random weights, whose ranges are those of random images.
Model quantized(const std::string& name) {
  ModelInfo info = random_model_info(name);
  info.height = info.width = image_size;
  info.transform = "resize";
  const auto module = make_model(info.architecture, 3);
  module->eval();
  ResNetCalibration calibration(dynamic_cast<ResNet&>(*module));
  calibration.observe(uniform({4, image_size, image_size, 3}, -2, 2, {.seed = 5}));
  info.quantization = QuantizationInfo{};
  return {.info = info, .module = calibration.quantize(detail::CalibrationMethod::percentile)};
}

QuantizedResNet& network(Model& model) {
  return dynamic_cast<QuantizedResNet&>(*model.module);
}

// The network's graph, and what it computes for random images: the stored levels in order, and the outputs.
struct Computed {
  OnnxModel onnx;
  std::vector<Tensor> levels;  // of every QuantizeLinear, u8 (n, height, width, channels)
  std::vector<float> outputs;
};

Computed compute(QuantizedResNet& network, const Tensor& images, bool integer_sums) {
  OnnxBuilder builder;
  const std::string outputs = add_quantized_network(builder, network, "input", integer_sums);
  Computed computed{.onnx = {.graph = builder.graph}, .levels = {}, .outputs = {}};
  OnnxGraph& graph = computed.onnx.graph;
  graph.inputs = {{.name = "input", .type = OnnxType::f32, .has_shape = false}};
  graph.outputs = {{.name = outputs, .type = OnnxType::f32, .has_shape = false}};
  std::vector<std::string> names;
  for (const OnnxNode& node : graph.nodes)
    if (node.op == "QuantizeLinear") names.push_back(node.outputs[0]);
  for (const std::string& name : names)
    graph.outputs.push_back({.name = name, .type = OnnxType::u8, .has_shape = false});
  const std::vector<float> values = images.permute({0, 3, 1, 2}).to_vector<float>();
  OnnxTensor input{.dims = {images.size(0), 3, image_size, image_size},
                   .data = std::string(values.size() * sizeof(float), '\0')};
  std::memcpy(input.data.data(), values.data(), input.data.size());
  const auto results = run_onnx(computed.onnx, {{"input", input}});
  for (const std::string& name : names) {
    const OnnxTensor& stored = results.at(name);
    const auto* const first = stored.values<std::uint8_t>();
    computed.levels.push_back(Tensor::from(std::vector<std::uint8_t>(first, first + stored.count()),
                                           {stored.dims[0], stored.dims[1], stored.dims[2], stored.dims[3]})
                                  .permute({0, 2, 3, 1})
                                  .contiguous());
  }
  const OnnxTensor& last = results.at(outputs);
  computed.outputs.assign(last.values<float>(), last.values<float>() + last.count());
  return computed;
}

// Equal but for values at the edge between two levels, whose sums have another order.
void expect_same_levels(const Tensor& expected, const Tensor& found, const std::string& name) {
  ASSERT_EQ(expected.shape(), found.shape()) << name;
  const auto a = expected.to_vector<std::uint8_t>(), b = found.to_vector<std::uint8_t>();
  std::int64_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - b[i]), 1) << name << " at " << i;
    different += a[i] != b[i] ? 1 : 0;
  }
  EXPECT_LE(different, std::ssize(a) / 500 + 1) << name << ", " << a.size() << " values";
}

// Each convolution gets the levels that the graph computed, so that no rounding of an earlier one is counted.
TEST(ExportQuantized, EveryConvolution_RoundsAsTandemDoes) {
  for (const char* const name : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    Model model = quantized(name);
    QuantizedResNet& net = network(model);
    const Tensor images = uniform({1, image_size, image_size, 3}, -2, 2, {.seed = 6});
    const Computed computed = compute(net, images, false);
    const std::vector<QuantizedConvolution> convs = net.convolutions();
    ASSERT_EQ(computed.levels.size(), convs.size() + 2);  // and images and max pooling
    const auto weight = [](const QuantizedConvolution& conv) {
      return conv.weight.permute({0, 2, 3, 1}).contiguous();
    };
    const auto first =
        detail::prepack_quantized_conv2d({weight(convs[0]), convs[0].scale}, convs[0].bias, convs[0].options,
                                         net.image_values(), convs[0].output);
    expect_same_levels(detail::quantize_images(images, net.image_values(), 3), computed.levels[0], "images");
    expect_same_levels(detail::quantized_conv2d(first, computed.levels[0], FusedActivation::relu),
                       computed.levels[1], "conv1");
    expect_same_levels(detail::quantized_max_pool2d(computed.levels[1], net.pool_kernel(), net.pool_window()),
                       computed.levels[2], "max pooling");
    for (std::size_t i = 1; i < convs.size(); ++i) {
      const QuantizedConvolution& conv = convs[i];
      const auto packed = detail::prepack_quantized_conv2d(
          {weight(conv), conv.scale}, conv.bias, conv.options, convs[conv.input].output, conv.output);
      detail::QuantizedResidual residual;
      if (conv.residual) residual = {computed.levels[*conv.residual + 2], convs[*conv.residual].output};
      expect_same_levels(
          detail::quantized_conv2d(packed, computed.levels[conv.input + 2],
                                   conv.has_relu ? FusedActivation::relu : FusedActivation::none, residual),
          computed.levels[i + 2], conv.name);
    }
    const std::vector<float> outputs =
        net.head()
            .forward(detail::quantized_image_mean(computed.levels.back(), convs.back().output))
            .to_vector<float>();
    ASSERT_EQ(outputs.size(), computed.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(outputs[i], computed.outputs[i], 1e-4);
  }
}

const OnnxTensor* find_constant(const OnnxGraph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.constants, name, &OnnxTensor::name);
  return found == graph.constants.end() ? nullptr : &*found;
}
const OnnxNode* find_producer(const OnnxGraph& graph, const std::string& value) {
  for (const OnnxNode& node : graph.nodes)
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return &node;
  return nullptr;
}

TEST(ExportQuantized, Graph_IsInQdqForm) {
  Model model = quantized("resnet18");
  const Tensor images = uniform({1, image_size, image_size, 3}, -2, 2, {.seed = 6});
  for (const bool integer_sums : {false, true}) {
    const OnnxGraph graph = compute(network(model), images, integer_sums).onnx.graph;
    int convolutions = 0, sums = 0;
    for (const OnnxNode& node : graph.nodes) {
      if (node.op == "Conv") {
        ++convolutions;
        const OnnxNode* const weight = find_producer(graph, node.inputs[1]);
        ASSERT_TRUE(weight && weight->op == "DequantizeLinear");
        EXPECT_EQ(weight->attributes[0].name, "axis");
        EXPECT_EQ(weight->attributes[0].integer, 0);
        const OnnxTensor *stored = find_constant(graph, weight->inputs[0]),
                         *scale = find_constant(graph, weight->inputs[1]);
        ASSERT_TRUE(stored && scale && find_constant(graph, node.inputs[2]));
        EXPECT_EQ(stored->type, OnnxType::i8);
        EXPECT_EQ(scale->dims, OnnxDims{stored->dims[0]});
        EXPECT_EQ(find_producer(graph, node.inputs[0])->op, "DequantizeLinear");
      }
      if (node.op == "Add") {
        ++sums;
        EXPECT_EQ(find_producer(graph, node.inputs[0])->op, integer_sums ? "DequantizeLinear" : "Conv");
        EXPECT_EQ(find_producer(graph, node.inputs[1])->op, "DequantizeLinear");
      }
    }
    EXPECT_EQ(convolutions, 20);
    EXPECT_EQ(sums, 8);
  }
  const QuantizedConvolution conv = network(model).convolutions()[1];
  const OnnxGraph graph = compute(network(model), images, false).onnx.graph;
  const OnnxTensor* const stored = find_constant(graph, conv.name + ".weight");
  const std::vector<std::uint8_t> levels = conv.weight.to_vector<std::uint8_t>();
  ASSERT_TRUE(stored && stored->count() == std::ssize(levels));
  for (std::size_t i = 0; i < levels.size(); ++i)
    ASSERT_EQ(stored->values<std::int8_t>()[i], levels[i] - 128);
}

TEST(ExportQuantized, File_IsVerifiedAndSmall) {
  const TempFolder folder;
  Model model = quantized("resnet18");
  std::vector<Image> images;
  for (std::uint32_t i = 0; i < 6; ++i) images.push_back(noise_image(40 + i, 60, 3, i));
  for (const ExportInput input : {ExportInput::image, ExportInput::tensor})
    for (const bool integer_sums : {false, true}) {
      const ExportReport report = export_onnx(
          model, folder / "m.onnx", {.input = input, .integer_sums = integer_sums, .images = images});
      EXPECT_EQ(report.same_class, 6);
      EXPECT_LE(report.max_difference, integer_sums ? 0.05 : 0.02);
      EXPECT_LT(report.bytes, 11'600'000u);
    }
  EXPECT_EQ(error_text([&] { export_onnx(model, folder / "x.onnx", {.weights = ExportWeights::bf16}); }),
            "[export] expected a model in floating point for weights in fp16 or bf16, got one in 8-bit "
            "integers");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.onnx"));
}

// A file whose scales or zero points were changed is refused in one line when it is computed.
TEST(ExportQuantized, ChangedFiles_AreRefused) {
  Model model = quantized("resnet18");
  const Tensor images = uniform({1, image_size, image_size, 3}, -2, 2, {.seed = 6});
  const OnnxModel whole = compute(network(model), images, false).onnx;
  const OnnxTensor input{.dims = {1, 3, image_size, image_size},
                         .data = std::string(3 * image_size * image_size * sizeof(float), '\0')};
  const auto expect_refused = [&](const auto& change, const std::string& text) {
    OnnxModel changed = whole;
    change(changed.graph);
    const OnnxModel read = parse_onnx(to_onnx(changed), "m.onnx");
    EXPECT_EQ(error_text([&] { run_onnx(read, {{"input", input}}); }), text);
  };
  const std::string name = network(model).convolutions()[1].name;
  const auto constant = [](OnnxGraph& graph, const std::string& of) {
    return std::ranges::find(graph.constants, of, &OnnxTensor::name);
  };
  expect_refused(
      [&](OnnxGraph& graph) {
        const float negative = -1;
        std::memcpy(constant(graph, name + ".scale")->data.data(), &negative, sizeof(negative));
      },
      "[onnx] DequantizeLinear: expected positive scales, got -1");
  expect_refused([&](OnnxGraph& graph) { constant(graph, name + ".zero")->type = OnnxType::u8; },
                 "[onnx] DequantizeLinear: expected zero points in i8 [64], got u8 [64]");
  expect_refused(
      [&](OnnxGraph& graph) {
        for (OnnxNode& node : graph.nodes)
          if (node.inputs[0] == name + ".weight") node.attributes[0].integer = 2;
      },
      "[onnx] DequantizeLinear: expected 3 scales for axis 2 of [64, 64, 3, 3], got 64");
}

}  // namespace
}  // namespace tandem
