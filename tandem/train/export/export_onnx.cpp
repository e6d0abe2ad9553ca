#include "tandem/train/export/export_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tandem/core/build_info.h"
#include "tandem/core/check.h"
#include "tandem/core/registry.h"
#include "tandem/core/write_file.h"
#include "tandem/data/synthetic/digits.h"
#include "tandem/data/synthetic/plates.h"
#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_runner.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/image/example_photo.h"
#include "tandem/image/resize.h"
#include "tandem/ops/concat.h"
#include "tandem/train/export/onnx_network.h"
#include "tandem/train/export/onnx_preprocessing.h"
#include "tandem/train/export/onnx_quantized_network.h"
#include "tandem/train/predict_images.h"

namespace tandem {
namespace {

constexpr std::int64_t opset = 18;
constexpr const char* output_name = "probabilities";

OnnxType stored_type(ExportWeights weights) {
  switch (weights) {
    case ExportWeights::fp16:
      return OnnxType::f16;
    case ExportWeights::bf16:
      return OnnxType::bf16;
    default:
      return OnnxType::f32;
  }
}

const char* input_name(ExportInput input) {
  return input == ExportInput::image ? "image" : "input";
}

OnnxSize any(const char* name) {
  return {.name = name};
}

OnnxValue input_value(const ModelInfo& info, ExportInput input) {
  if (input == ExportInput::image)
    return {.name = "image", .type = OnnxType::u8, .sizes = {any("height"), any("width"), {.value = 3}}};
  return {.name = "input",
          .type = OnnxType::f32,
          .sizes = {any("batch"), {.value = info.channels}, {.value = info.height}, {.value = info.width}}};
}

// Adds what turns the outputs of the network [n, classes] into probabilities, as probabilities() does.
void add_probabilities(OnnxBuilder& builder, const ModelInfo& info, ExportInput input,
                       const std::string& outputs) {
  const auto one = std::int64_t{1};
  const bool single = input == ExportInput::image;
  const std::string rows = single ? builder.add("Reshape", {outputs, builder.integers({-1})}) : outputs;
  const std::int64_t axis = single ? 0 : 1;
  if (info.architecture.loss == LossKind::cross_entropy) {
    const double temperature = info.decision.temperature;
    const std::string logits =
        temperature == 1 ? rows : builder.add("Div", {rows, builder.number(temperature, OnnxType::f32)});
    builder.add_named("Softmax", {logits}, output_name, {onnx_attribute("axis", std::int64_t{-1})});
  } else {
    const std::string sum =
        builder.add("ReduceSum", {rows, builder.integers({axis})}, {onnx_attribute("keepdims", one)});
    builder.add_named("Div", {rows, sum}, output_name);
  }
}

// The outputs of the network.
std::string add_outputs(OnnxBuilder& builder, Model& model, const std::string& pixels,
                        const ExportOptions& options) {
  const ModelInfo& info = model.info;
  if (auto* const quantized = dynamic_cast<QuantizedResNet*>(model.module.get()))
    return add_quantized_network(builder, *quantized, pixels, options.integer_sums);
  return add_network(builder, *model.module,
                     {.height = info.height,
                      .width = info.width,
                      .channels = info.channels,
                      .flat = info.architecture.expects_flat_input()},
                     pixels, stored_type(options.weights));
}

OnnxModel make_onnx(Model& model, const ExportOptions& options) {
  const ModelInfo& info = model.info;
  OnnxBuilder builder;
  const std::string input = input_name(options.input);
  const std::string pixels =
      options.input == ExportInput::image ? add_preprocessing(builder, info, input) : input;
  add_probabilities(builder, info, options.input, add_outputs(builder, model, pixels, options));

  OnnxModel made{.producer = "tandem",
                 .producer_version = std::string(build_info().version),
                 .opsets = {{"", opset}},
                 .metadata = model_metadata(info),
                 .graph = std::move(builder.graph)};
  made.graph.name = info.architecture.model;
  made.graph.inputs = {input_value(info, options.input)};
  OnnxValue probabilities{
      .name = output_name, .type = OnnxType::f32, .sizes = {{.value = std::ssize(info.classes)}}};
  if (options.input == ExportInput::tensor)
    probabilities.sizes.insert(probabilities.sizes.begin(), any("batch"));
  made.graph.outputs = {std::move(probabilities)};
  made.metadata["tandem.version"] = build_info().version;
  made.metadata["tandem.preprocessing"] =
      options.input == ExportInput::image
          ? "in the graph: " + describe_preprocessing(info)
          : "by the caller: " + describe_preprocessing(info) + "; channels first";
  return made;
}

// Eight images of mixed sizes, larger and smaller than the input, wide and tall.
std::vector<Image> rendered_images(const ModelInfo& info) {
  std::vector<Image> images;
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes{{480, 640}, {301, 200}, {97, 350}, {40, 31}};
  for (const auto& [height, width] : sizes) images.push_back(example_photo(height, width));
  if (info.channels == 1) {
    const ImageSet digits = make_digits(4, 7);
    const auto pixels = digits.images.to_vector<std::uint8_t>();
    for (std::size_t i = 0; i < 4; ++i) {
      Image digit = make_image(28, 28, 1);
      std::copy_n(pixels.begin() + std::ptrdiff_t(i * 784), 784, digit.pixels.begin());
      images.push_back(to_rgb(digit));
    }
    return images;
  }
  for (std::uint64_t i = 0; i < 4; ++i)
    images.push_back(resize(render_plate(7, i, i % 2 == 1, 240), 150 + 40 * std::int64_t(i), 240));
  return images;
}

OnnxTensor image_tensor(const Image& image) {
  return {.type = OnnxType::u8,
          .dims = {image.height, image.width, 3},
          .data = std::string(image.pixels.begin(), image.pixels.end())};
}

// The normalized inputs of all images, channels first.
OnnxTensor batch_tensor(const ModelInfo& info, const Tensor& pixels) {
  const Tensor input = network_input(pixels, info.input());
  const Tensor images = input.reshape({pixels.size(0), info.height, info.width, info.channels});
  const std::vector<float> values = images.permute({0, 3, 1, 2}).to_vector<float>();
  OnnxTensor tensor{.dims = {pixels.size(0), info.channels, info.height, info.width},
                    .data = std::string(values.size() * sizeof(float), '\0')};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

std::vector<float> run(const OnnxModel& onnx, ExportInput input, const OnnxTensor& tensor) {
  const OnnxTensor output = run_onnx(onnx, {{input_name(input), tensor}}).at(output_name);
  return {output.values<float>(), output.values<float>() + output.count()};
}

void compare(const std::vector<float>& expected, std::span<const float> found, ExportReport& report) {
  expect(expected.size() == found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(expected[i]) - found[i]);
    if (!(difference <= report.max_difference)) report.max_difference = difference;  // NaN stays
  }
  const auto best = [](const auto& row) { return std::ranges::max_element(row) - row.begin(); };
  report.same_class += best(expected) == best(found) ? 1 : 0;
  ++report.images;
}

void verify(const OnnxModel& onnx, Model& model, ExportInput input, const std::vector<Image>& images,
            ExportReport& report) {
  std::vector<Tensor> pixels;
  for (const Image& image : images) pixels.push_back(model_pixels(model.info, image, "export"));
  const Tensor batch = concat(pixels, 0);
  const auto expected = predict_probabilities(*model.module, model.info, batch);
  if (input == ExportInput::tensor) {
    const std::vector<float> found = run(onnx, input, batch_tensor(model.info, batch));
    const std::size_t classes = model.info.classes.size();
    check(found.size() == expected.size() * classes,
          "[export] expected {} probabilities, the graph computes {}", expected.size() * classes,
          found.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      compare(expected[i], std::span(found).subspan(i * classes, classes), report);
  } else {
    for (std::size_t i = 0; i < images.size(); ++i) {
      const std::vector<float> found = run(onnx, input, image_tensor(images[i]));
      check(found.size() == expected[i].size(), "[export] expected {} probabilities, the graph computes {}",
            expected[i].size(), found.size());
      compare(expected[i], found, report);
    }
  }
}

// Of 8-bit integers: a value at the edge between two levels is rounded to the other one if a sum has another
// order, and later layers enlarge that.
double default_tolerance(const ExportOptions& options, bool is_quantized) {
  if (is_quantized) return options.integer_sums ? 0.2 : 0.1;
  return options.weights == ExportWeights::fp32 ? 1e-3 : 0.05;
}

}  // namespace

ExportInput parse_export_input(std::string_view name) {
  check(name == "image" || name == "tensor", "[export] expected image or tensor as the input, got '{}'",
        name);
  return name == "image" ? ExportInput::image : ExportInput::tensor;
}

ExportWeights parse_export_weights(std::string_view name) {
  check(name == "fp32" || name == "fp16" || name == "bf16",
        "[export] expected fp32, fp16 or bf16 weights, got '{}'", name);
  return name == "fp32" ? ExportWeights::fp32 : name == "fp16" ? ExportWeights::fp16 : ExportWeights::bf16;
}

ExportReport export_onnx(Model& model, const std::filesystem::path& path, const ExportOptions& options) {
  const bool is_quantized = model.info.quantization.has_value();
  const double tolerance = options.tolerance.value_or(default_tolerance(options, is_quantized));
  check(tolerance >= 0, "[export] expected a tolerance of 0 or more, got {}", tolerance);
  check(!is_quantized || options.weights == ExportWeights::fp32,
        "[export] expected a model in floating point for weights in fp16 or bf16, got one in 8-bit integers");
  check(is_quantized || !options.integer_sums,
        "[export] expected a model in 8-bit integers for integer sums, got one in floating point");
  check_writable("export", path);
  const std::string bytes = to_onnx(make_onnx(model, options));
  const OnnxModel read = parse_onnx(bytes, path.string());
  ExportReport report{
      .file = path.string(), .bytes = bytes.size(), .opset = opset, .nodes = std::ssize(read.graph.nodes)};
  std::vector<Image> images = options.images.empty() ? rendered_images(model.info) : options.images;
  for (Image& image : images) image = to_rgb(image);
  verify(read, model, options.input, images, report);
  check(report.max_difference <= tolerance,
        "[export] the exported graph differs from the model by {:.2g} in probability (expected at most "
        "{:.2g}) for {} images: nothing was written",
        report.max_difference, tolerance, report.images);
  write_file("export", path, bytes);
  return report;
}

}  // namespace tandem
