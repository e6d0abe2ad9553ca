// Metadata are text: lists of names are JSON, numbers in the shortest form that reads back the same.
#include "tandem/train/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tandem/core/check.h"
#include "tandem/files/safetensors.h"
#include "tandem/nn/mlp.h"

namespace tandem {
namespace {

constexpr const char* format_version = "1";
constexpr std::int64_t most_pixels = std::int64_t{1} << 24;

// The metadata of one file, with errors that name it.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& entries, std::string name)
      : entries_(entries), name_(std::move(name)) {}

  const std::string& text(const std::string& key) const {
    const auto found = entries_.find("tandem." + key);
    check(found != entries_.end(), "[model] {}: not a model file of Tandem: it has no tandem.{}", name_, key);
    return found->second;
  }
  template <class T>
  T number(const std::string& key, T least, T most) const {
    return parse<T>(key, text(key), least, most);
  }
  std::vector<std::int64_t> sizes(const std::string& key) const {
    std::vector<std::int64_t> all;
    const std::string& list = text(key);
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      all.push_back(parse<std::int64_t>(key, list.substr(begin, end - begin), 1, most_pixels));
      begin = end + 1;
    }
    need(all.size() <= 1000, "expected at most 1000 sizes as tandem.{}, got {}", key, all.size());
    return all;
  }
  template <class... Args>
  void need(bool holds, fmt::format_string<Args...> text, Args&&... args) const {
    if (!holds) fail("[model] {}: {}", name_, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  template <class T>
  T parse(const std::string& key, const std::string& given, T least, T most) const {
    T value{};
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    need(error == std::errc{} && end == given.data() + given.size() && value >= least && value <= most,
         "expected a number from {} to {} as tandem.{}, got '{}'", least, most, key, given);
    return value;
  }

  const std::map<std::string, std::string>& entries_;
  std::string name_;
};

ModelInfo read_info(const Metadata& metadata) {
  metadata.need(metadata.text("format") == format_version, "expected format {}, got '{}'", format_version,
                metadata.text("format"));
  ModelInfo info;
  Architecture& architecture = info.architecture;
  architecture.model = metadata.text("model");
  metadata.need(architecture.model == "mlp", "expected the model mlp, got '{}'", architecture.model);
  architecture.layers = metadata.sizes("layers");
  const std::string& activation = metadata.text("activation");
  const auto all = {Activation::sigmoid, Activation::tanh, Activation::relu};
  const auto* found =
      std::find_if(all.begin(), all.end(), [&](Activation a) { return activation == name_of(a); });
  metadata.need(found != all.end(), "expected sigmoid, tanh or relu as tandem.activation, got '{}'",
                activation);
  architecture.activation = *found;
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
  metadata.need(architecture.layers.size() >= 2 && info.height <= most_pixels / info.width / info.channels &&
                    architecture.layers.front() == info.height * info.width * info.channels &&
                    architecture.layers.back() == static_cast<std::int64_t>(info.classes.size()),
                "expected layers from {} pixels to {} classes, got {}", metadata.text("image"),
                info.classes.size(), metadata.text("layers"));
  info.pixel_scale = metadata.number<float>("pixel_scale", 0, 1e6f);
  info.data = metadata.text("data");
  info.command = metadata.text("command");
  info.epoch = metadata.number<std::int64_t>("epoch", 0, std::int64_t{1} << 40);
  info.accuracy = metadata.number<double>("accuracy", 0, 1);
  return info;
}

// Before memory is taken: the file must hold the weights that its metadata promise.
void check_weights(const Metadata& metadata, const Architecture& architecture, const NamedTensors& tensors) {
  std::int64_t promised = 0, held = 0;
  for (std::size_t i = 1; i < architecture.layers.size(); ++i)
    promised += architecture.layers[i - 1] * architecture.layers[i];
  for (const auto& [name, tensor] : tensors)
    if (tensor.rank() == 2) held += tensor.numel();
  std::string shapes;
  for (const auto& [name, tensor] : tensors)
    shapes += fmt::format("{}{} {}", shapes.empty() ? "" : ", ", name, tensor.shape().to_string());
  metadata.need(promised == held, "expected the {} weights of {}, got {}: {}", promised,
                architecture.to_string(), held, shapes);
}

}  // namespace

std::string Architecture::to_string() const {
  return fmt::format("{} {} {}", model, fmt::join(layers, ","), name_of(activation));
}

std::unique_ptr<Module> make_model(const Architecture& architecture, std::uint64_t seed) {
  return make_mlp({.layers = architecture.layers,
                   .activation = architecture.activation,
                   .dropout = architecture.dropout,
                   .sigmoid_output = architecture.loss == LossKind::mse,
                   .seed = seed});
}

void save_model(const std::filesystem::path& path, const Module& module, const ModelInfo& info) {
  const Architecture& architecture = info.architecture;
  write_safetensors(
      path, {.metadata = {{"tandem.format", format_version},
                          {"tandem.model", architecture.model},
                          {"tandem.layers", fmt::format("{}", fmt::join(architecture.layers, ","))},
                          {"tandem.activation", name_of(architecture.activation)},
                          {"tandem.loss", name_of(architecture.loss)},
                          {"tandem.dropout", fmt::format("{}", architecture.dropout)},
                          {"tandem.classes", nlohmann::json(info.classes).dump()},
                          {"tandem.image", fmt::format("{},{},{}", info.height, info.width, info.channels)},
                          {"tandem.pixel_scale", fmt::format("{}", info.pixel_scale)},
                          {"tandem.data", info.data},
                          {"tandem.command", info.command},
                          {"tandem.epoch", fmt::format("{}", info.epoch)},
                          {"tandem.accuracy", fmt::format("{}", info.accuracy)}},
             .tensors = module.state_dict()});
}

Model load_model(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const Metadata metadata(file.metadata, path.string());
  Model model{.info = read_info(metadata), .module = nullptr};
  check_weights(metadata, model.info.architecture, file.tensors);
  model.module = make_model(model.info.architecture, 0);
  try {
    model.module->load_state_dict(file.tensors);
  } catch (const Error& error) {
    fail("[model] {}: not the weights of {}: {}", path.string(), model.info.architecture.to_string(),
         error.what());
  }
  model.module->eval();
  return model;
}

}  // namespace tandem
