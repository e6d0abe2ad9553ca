// Metadata are text: lists of names are JSON, numbers are in the shortest form that round-trips.
#include "tandem/train/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/checkpoint.h"
#include "tandem/files/safetensors.h"
#include "tandem/files/safetensors_parts.h"
#include "tandem/files/weights.h"
#include "tandem/nn/model_registry.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/report/interval.h"

namespace tandem {
namespace {

constexpr const char* format_version = "1";
constexpr std::int64_t max_pixels = std::int64_t{1} << 24;

// The metadata of one file, with errors that name it.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& entries, std::string name)
      : entries_(entries), name_(std::move(name)) {}

  bool has(const std::string& key) const { return entries_.contains("tandem." + key); }
  const std::string& text(const std::string& key) const {
    const auto found = entries_.find("tandem." + key);
    check(found != entries_.end(), "[model] {}: not a model file of Tandem: it has no tandem.{}", name_, key);
    return found->second;
  }
  template <class T>
  T number(const std::string& key, T min, T max) const {
    return parse<T>(key, text(key), min, max);
  }
  // Comma-separated numbers.
  template <class T>
  std::vector<T> numbers(const std::string& key, T min, T max) const {
    std::vector<T> all;
    const std::string& list = text(key);
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      all.push_back(parse<T>(key, list.substr(begin, end - begin), min, max));
      begin = end + 1;
    }
    need(all.size() <= 1000, "expected at most 1000 sizes as tandem.{}, got {}", key, all.size());
    return all;
  }
  std::vector<std::int64_t> sizes(const std::string& key) const {
    return numbers<std::int64_t>(key, 1, max_pixels);
  }
  template <class... Args>
  void need(bool holds, fmt::format_string<Args...> text, Args&&... args) const {
    if (!holds) fail("[model] {}: {}", name_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  template <class T>
  T parse(const std::string& key, const std::string& given, T min, T max) const {
    T value{};
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    need(error == std::errc{} && end == given.data() + given.size() && value >= min && value <= max,
         "expected a number from {} to {} as tandem.{}, got '{}'", min, max, key, given);
    return value;
  }

  const std::map<std::string, std::string>& entries_;
  std::string name_;
};

void read_norm(const Metadata& metadata, ModelInfo& info) {
  const std::vector<float> mean = metadata.numbers("mean", -1e6f, 1e6f);
  const std::vector<float> deviation = metadata.numbers("std", 1e-6f, 1e6f);
  const auto channels = static_cast<std::size_t>(info.channels);
  metadata.need(mean.size() == channels && deviation.size() == channels,
                "expected {} numbers as tandem.mean and tandem.std, got {} and {}", channels, mean.size(),
                deviation.size());
  std::ranges::copy(mean, info.norm.mean);
  std::ranges::copy(deviation, info.norm.stddev);
}

void read_transform(const Metadata& metadata, ModelInfo& info) {
  if (!metadata.has("transform")) return;
  info.transform = metadata.text("transform");
  metadata.need(info.expects_photos() && info.channels == 3 && info.height == info.width,
                "expected square RGB images beside tandem.transform, got {}", metadata.text("image"));
  try {
    info.photo_recipe();
  } catch (const Error& error) {
    metadata.need(false, "expected a recipe as tandem.transform: {}", error.what());
  }
}

void read_decision(const Metadata& metadata, ModelInfo& info) {
  if (metadata.has("temperature"))
    info.decision.temperature = metadata.number<double>("temperature", 1e-6, 1e6);
  metadata.need(info.decision.temperature == 1 || info.architecture.loss != LossKind::mse,
                "expected no tandem.temperature beside loss mse");
  if (!metadata.has("threshold")) return;
  info.decision.threshold = metadata.number<double>("threshold", 0, 1);
  metadata.need(info.classes.size() == 2, "expected two classes beside tandem.threshold, got {}",
                info.classes.size());
}

void read_quantization(const Metadata& metadata, ModelInfo& info) {
  if (!metadata.has("quantization")) return;
  metadata.need(metadata.text("quantization") == "int8", "expected int8 as tandem.quantization, got '{}'",
                metadata.text("quantization"));
  const auto count = [&](const char* key) {
    return metadata.number<std::int64_t>(key, 0, std::int64_t{1} << 40);
  };
  const auto share = [&](const char* key) { return metadata.number<double>(key, 0, 1); };
  info.quantization = {.method = metadata.text("quantization.method"),
                       .calibration_images = count("quantization.calibration_images"),
                       .test_images = count("quantization.test_images"),
                       .accuracy_before = share("quantization.accuracy_before"),
                       .accuracy_after = share("quantization.accuracy_after"),
                       .same_class = share("quantization.same_class"),
                       .data = metadata.text("quantization.data"),
                       .command = metadata.text("quantization.command")};
}

ModelInfo read_info(const Metadata& metadata) {
  metadata.need(metadata.text("format") == format_version, "expected format {}, got '{}'", format_version,
                metadata.text("format"));
  ModelInfo info;
  Architecture& architecture = info.architecture;
  architecture.model = metadata.text("model");
  if (architecture.expects_flat_input()) architecture.layers = metadata.sizes("layers");
  const std::string& activation = metadata.text("activation");
  metadata.need(activations().find(activation) != nullptr,
                "expected one of {} as tandem.activation, got '{}'", activations().list(), activation);
  architecture.activation = parse_activation(activation);
  const std::string& loss = metadata.text("loss");
  metadata.need(loss == "cross-entropy" || loss == "mse",
                "expected cross-entropy or mse as tandem.loss, got '{}'", loss);
  architecture.loss = parse_loss(loss);
  architecture.dropout = metadata.number<double>("dropout", 0, 1);

  const nlohmann::json names = nlohmann::json::parse(metadata.text("classes"), nullptr, false);
  metadata.need(
      names.is_array() && std::ranges::all_of(names, [](const auto& name) { return name.is_string(); }),
      "expected a list of names as tandem.classes");
  info.classes = names.get<std::vector<std::string>>();
  const std::vector<std::int64_t> image = metadata.sizes("image");
  metadata.need(image.size() == 3, "expected height,width,channels as tandem.image, got '{}'",
                metadata.text("image"));
  info.height = image[0], info.width = image[1], info.channels = image[2];
  metadata.need(info.height <= max_pixels / info.width / info.channels,
                "expected at most {} values per image, got {}", max_pixels, metadata.text("image"));
  const auto classes = static_cast<std::int64_t>(info.classes.size());
  if (architecture.expects_flat_input()) {
    metadata.need(architecture.layers.size() >= 2 &&
                      architecture.layers.front() == info.height * info.width * info.channels &&
                      architecture.layers.back() == classes,
                  "expected layers from {} pixels to {} classes, got {}", metadata.text("image"), classes,
                  metadata.text("layers"));
    info.pixel_scale = metadata.number<float>("pixel_scale", 0, 1e6f);
  } else {
    metadata.need(classes > 0 && info.channels <= max_image_channels,
                  "expected classes and at most {} channels, got {} and {}", max_image_channels, classes,
                  info.channels);
    architecture.channels = info.channels;
    architecture.classes = classes;
    read_norm(metadata, info);
  }
  read_transform(metadata, info);
  info.data = metadata.text("data");
  info.command = metadata.text("command");
  info.epoch = metadata.number<std::int64_t>("epoch", 0, std::int64_t{1} << 40);
  info.accuracy = metadata.number<double>("accuracy", 0, 1);
  read_decision(metadata, info);
  read_quantization(metadata, info);
  return info;
}

// Before memory is allocated: the file must contain as many weights as its metadata state.
void check_weights(const Metadata& metadata, const Architecture& architecture, const NamedTensors& tensors) {
  if (!architecture.expects_flat_input()) return;  // sizes of other models do not depend on the file
  std::int64_t expected = 0, found = 0;
  for (std::size_t i = 1; i < architecture.layers.size(); ++i)
    expected += architecture.layers[i - 1] * architecture.layers[i];
  for (const auto& [name, tensor] : tensors)
    if (tensor.rank() == 2) found += tensor.numel();
  std::string shapes;
  for (const auto& [name, tensor] : tensors)
    shapes += fmt::format("{}{} {}", shapes.empty() ? "" : ", ", name, tensor.shape().to_string());
  metadata.need(expected == found, "expected the {} weights of {}, got {}: {}", expected,
                architecture.to_string(), found, shapes);
}

void write_quantization(const QuantizationInfo& quantization, std::map<std::string, std::string>& metadata) {
  const auto put = [&](const char* key, const auto& value) {
    metadata[fmt::format("tandem.quantization.{}", key)] = fmt::format("{}", value);
  };
  const auto put_share = [&](const std::string& when, double share) {
    const Interval interval = wilson_interval(share, quantization.test_images);
    put(("accuracy_" + when).c_str(), share);
    put(("interval_" + when).c_str(), fmt::format("{},{}", interval.low, interval.high));
  };
  metadata["tandem.quantization"] = "int8";
  put("method", quantization.method);
  put("calibration_images", quantization.calibration_images);
  put("test_images", quantization.test_images);
  put_share("before", quantization.accuracy_before);
  put_share("after", quantization.accuracy_after);
  put("same_class", quantization.same_class);
  put("data", quantization.data);
  put("command", quantization.command);
}

// The file itself, or the one in a run folder.
std::filesystem::path model_path(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (const char* const name : {"best.safetensors", "last.ckpt"})
    if (std::filesystem::exists(path / name, ignored)) return path / name;
  fail(
      "[model] {}: expected a model file or the folder of a run, got a folder without best.safetensors and "
      "last.ckpt",
      path.string());
}

TensorFile read_model(const std::filesystem::path& path) {
  TensorFile file = is_checkpoint(path) ? read_checkpoint(path) : read_safetensors(path);
  if (file.metadata.contains("tandem.checkpoint")) {
    const std::string prefix = "model.";
    std::erase_if(file.tensors, [&](const NamedTensor& each) { return !each.name.starts_with(prefix); });
    for (NamedTensor& each : file.tensors) each.name.erase(0, prefix.size());
  }
  check_finite(file, path.string());
  return file;
}

// The steps of dropout and stochastic depth, which training alone needs: checkpoints have them, model files
// do not, so that other programs find the names they know.
bool is_step_counter(const NamedTensor& named) {
  return named.name.ends_with(".step") && named.tensor.dtype() == DType::i64 && named.tensor.rank() == 0;
}

}  // namespace

ImageInput ModelInfo::input() const {
  return {.flat = architecture.expects_flat_input(),
          .pixel_scale = pixel_scale,
          .height = height,
          .width = width,
          .channels = channels,
          .norm = norm};
}

PhotoRecipe ModelInfo::photo_recipe() const {
  expect(expects_photos());
  const Transform parsed =
      Transform::parse(transform, static_cast<int>(std::min<std::int64_t>(height, 1 << 20)));
  check(parsed.resizes(), "[model] expected a transform for photographs, got '{}'", transform);
  return parsed.photo();
}

void save_model(const std::filesystem::path& path, const Module& module, const ModelInfo& info) {
  save_model(path, module.state_dict(), info);
}

void save_model(const std::filesystem::path& path, const NamedTensors& weights, const ModelInfo& info) {
  start_model(path, weights, info).finish();
}

std::map<std::string, std::string> model_metadata(const ModelInfo& info) {
  const Architecture& architecture = info.architecture;
  std::map<std::string, std::string> metadata{
      {"tandem.format", format_version},
      {"tandem.model", architecture.model},
      {"tandem.activation", name_of(architecture.activation)},
      {"tandem.loss", name_of(architecture.loss)},
      {"tandem.dropout", fmt::format("{}", architecture.dropout)},
      {"tandem.classes", nlohmann::json(info.classes).dump()},
      {"tandem.image", fmt::format("{},{},{}", info.height, info.width, info.channels)},
      {"tandem.data", info.data},
      {"tandem.command", info.command},
      {"tandem.epoch", fmt::format("{}", info.epoch)},
      {"tandem.accuracy", fmt::format("{}", info.accuracy)}};
  if (architecture.expects_flat_input()) {
    metadata["tandem.layers"] = fmt::format("{}", fmt::join(architecture.layers, ","));
    metadata["tandem.pixel_scale"] = fmt::format("{}", info.pixel_scale);
  } else {
    const auto channels = static_cast<std::size_t>(info.channels);
    metadata["tandem.mean"] = fmt::format("{}", fmt::join(info.norm.mean, info.norm.mean + channels, ","));
    metadata["tandem.std"] = fmt::format("{}", fmt::join(info.norm.stddev, info.norm.stddev + channels, ","));
  }
  if (info.expects_photos()) metadata["tandem.transform"] = info.transform;
  if (info.decision.temperature != 1)
    metadata["tandem.temperature"] = fmt::format("{}", info.decision.temperature);
  if (info.decision.threshold) metadata["tandem.threshold"] = fmt::format("{}", *info.decision.threshold);
  if (info.quantization) write_quantization(*info.quantization, metadata);
  return metadata;
}

NamedTensors with_step_counters(NamedTensors weights, const Module& module) {
  for (const NamedTensor& own : module.state_dict())
    if (is_step_counter(own) && std::ranges::find(weights, own.name, &NamedTensor::name) == weights.end())
      weights.push_back(own);
  return weights;
}

PendingFile start_model(const std::filesystem::path& path, const NamedTensors& weights,
                        const ModelInfo& info) {
  NamedTensors stored = weights;
  std::erase_if(stored, is_step_counter);
  return {"safetensors", path, safetensors_parts({.metadata = model_metadata(info), .tensors = stored})};
}

ModelInfo load_model_into(Module& module, const std::filesystem::path& given) {
  const std::filesystem::path path = model_path(given);
  const TensorFile file = read_model(path);
  ModelInfo info = read_info(Metadata(file.metadata, path.string()));
  check(!info.quantization, "[model] {}: expected weights in floating point, got a model in 8-bit integers",
        path.string());
  try {
    module.load_state_dict(with_step_counters(file.tensors, module));
  } catch (const Error& error) {
    fail("[model] {}: not the weights of this module: {}", path.string(), error.what());
  }
  module.eval();
  return info;
}

Model load_model(const std::filesystem::path& given) {
  const std::filesystem::path path = model_path(given);
  const TensorFile file = read_model(path);
  const Metadata metadata(file.metadata, path.string());
  Model model{.info = read_info(metadata), .module = nullptr};
  metadata.need(models().find(model.info.architecture.model) != nullptr,
                "'{}' is not a model this program knows (known: {}): register_model() it first{}",
                model.info.architecture.model, models().list(),
                model.info.command.empty() ? "" : "; it was made by: " + model.info.command);
  check_weights(metadata, model.info.architecture, file.tensors);
  model.module = make_model(model.info.architecture, 0);
  if (model.info.quantization) {
    const auto* const like = dynamic_cast<const ResNet*>(model.module.get());
    metadata.need(like != nullptr, "expected a ResNet beside tandem.quantization, got {}",
                  model.info.architecture.model);
    metadata.need(std::ranges::find(file.tensors, "images", &NamedTensor::name) != file.tensors.end(),
                  "made by a version whose first convolution was in bf16: quantize the model again");
    model.module = std::make_unique<QuantizedResNet>(*like);
  }
  try {
    model.module->load_state_dict(with_step_counters(file.tensors, *model.module));
    if (const auto* const quantized = dynamic_cast<const QuantizedResNet*>(model.module.get()))
      quantized->check_scales();
  } catch (const Error& error) {
    fail("[model] {}: not the weights of {}: {}", path.string(), model.info.architecture.to_string(),
         error.what());
  }
  model.module->eval();
  return model;
}

}  // namespace tandem
