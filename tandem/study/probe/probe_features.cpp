#include "tandem/study/probe/probe_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/files/cache.h"
#include "tandem/files/checkpoint.h"
#include "tandem/files/fetch.h"
#include "tandem/files/shipped_weights.h"
#include "tandem/files/weights.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/tensor/tape.h"
#include "tandem/text/utf8.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/predict_images.h"

namespace tandem {
namespace {

void load_imagenet(BackboneModel& model, const std::string& architecture) {
  check(has_weights(architecture), "[probe] expected a model with published ImageNet weights, got {}",
        architecture);
  std::filesystem::path file;
  try {
    file = fetch_weights(architecture, {.offline = true});
  } catch (const Error&) {
    fail("[probe] expected the ImageNet weights of {} in the cache {}, found none", architecture,
         cache_directory().string());
  }
  load_weights(model, file);
}

void load_scenes(BackboneModel& model, const std::string& architecture) {
  load_weights(model, find_shipped_weights(architecture));
}

// Whether the file states its architecture.
bool is_model(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || is_checkpoint(path) ||
         read_weights(path).metadata.contains("tandem.model");
}

std::unique_ptr<BackboneModel> as_backbone(std::unique_ptr<Module> module, const std::string& name,
                                           const std::string& architecture) {
  auto* const backbone = dynamic_cast<BackboneModel*>(module.get());
  check(backbone != nullptr,
        "[probe] {}: expected a model with a backbone, such as cnn or resnet18, got {}, which has none", name,
        architecture);
  static_cast<void>(module.release());
  return std::unique_ptr<BackboneModel>(backbone);
}

void set_input(ModelInfo& info, const ProbeModelOptions& options) {
  const std::int64_t min_side = models().get(info.architecture.model).min_side;
  check(options.image_size >= min_side, "[probe] expected an image size of {} or more for {}, got {}",
        min_side, info.architecture.model, options.image_size);
  info.height = info.width = options.image_size;
  if (info.expects_photos())
    info.transform = evaluation_transform(static_cast<int>(options.image_size)).to_string();
}

// The architecture with random weights.
ProbeModel new_model(const std::string& name, const ProbeModelOptions& options) {
  ProbeModel model{.name = name, .weights = "random", .info = {}, .module = nullptr};
  model.info.architecture.model = options.architecture;
  model.info.architecture.channels = model.info.channels = 3;
  model.info.architecture.classes = 2;
  const ModelRow& row = models().get(options.architecture);
  check(!row.flat_input, "[probe] expected a model with a backbone, such as cnn or resnet18, got {}",
        row.name);
  model.info.norm = imagenet_norm;
  model.info.transform = evaluation_transform().to_string();  // takes images of any size, gray or RGB
  set_input(model.info, options);
  model.module = as_backbone(make_model(model.info.architecture, options.seed), name, options.architecture);
  return model;
}

// u8 (n, height, width, channels), on the host.
Tensor read_batch(const ModelInfo& info, const Dataset& dataset, std::span<const std::int64_t> images) {
  const Tensor batch = Tensor::empty({std::ssize(images), info.height, info.width, info.channels}, DType::u8);
  const std::int64_t bytes = info.height * info.width * info.channels;
  std::uint8_t* const out = batch.data<std::uint8_t>();
  parallel_tasks(std::ssize(images), 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      const Tensor pixels = model_pixels(info, dataset.image(images[static_cast<std::size_t>(i)]), "probe");
      std::memcpy(out + i * bytes, pixels.data<std::uint8_t>(), static_cast<std::size_t>(bytes));
    };
  });
  return batch;
}

Tensor input_batch(const ProbeModel& model, const Dataset& dataset, std::span<const std::int64_t> images) {
  return network_input(read_batch(model.info, dataset, images).to(device_of(*model.module)),
                       model.info.input());
}

std::size_t batch_size(const ProbeModel& model) {
  return static_cast<std::size_t>(evaluation_batch_size(model.info.input(), device_of(*model.module)));
}

}  // namespace

const Registry<NamedWeights>& named_weights() {
  static const Registry<NamedWeights> rows(
      "weights",
      {{.name = "random", .summary = "random weights, batch-norm statistics of training images", .load = {}},
       {.name = "imagenet", .summary = "the published ImageNet weights, in the cache", .load = load_imagenet},
       {.name = "scenes",
        .summary = "weights from rendered scenes, which ship with Tandem",
        .load = load_scenes}});
  return rows;
}

ProbeModel load_probe_model(const std::string& name, const ProbeModelOptions& options) {
  if (const NamedWeights* const row = named_weights().find(name)) {
    ProbeModel model = new_model(name, options);
    model.calibrates = !row->load;
    if (row->load) row->load(*model.module, options.architecture), model.weights = name;
    return model;
  }
  std::error_code ignored;
  check(std::filesystem::exists(name, ignored),
        "[probe] expected one of {}, a run folder, or a file with a model or weights, got '{}'{}",
        named_weights().list(), one_line(name), did_you_mean(name, named_weights().names()));
  if (!is_model(name)) {
    ProbeModel model = new_model(name, options);
    load_weights(*model.module, name);
    model.weights = "from this file";
    return model;
  }
  Model loaded = load_model(name);
  check(!loaded.info.quantization,
        "[probe] {}: expected a model in floating point, got one in 8-bit integers", one_line(name));
  ProbeModel model{.name = name,
                   .weights = fmt::format("epoch {} on {}", loaded.info.epoch, loaded.info.data),
                   .info = std::move(loaded.info),
                   .module = nullptr};
  model.module = as_backbone(std::move(loaded.module), name, model.info.architecture.to_string());
  if (options.resizes_all) set_input(model.info, options);
  return model;
}

Features compute_features(ProbeModel& model, const Dataset& dataset, std::span<const std::int64_t> images,
                          const FeatureProgress& on_progress) {
  const NoGrad no_grad;
  model.module->eval();
  const std::size_t batch = batch_size(model);
  Features all{.count = std::ssize(images)};
  for (std::size_t begin = 0; begin < images.size(); begin += batch) {
    const auto part = images.subspan(begin, std::min(batch, images.size() - begin));
    const Tensor features = model.module->stage_features(input_batch(model, dataset, part));
    all.width = features.size(1);
    const std::vector<float> values = features.to_vector<float>();
    all.values.insert(all.values.end(), values.begin(), values.end());
    if (on_progress) on_progress(static_cast<std::int64_t>(begin + part.size()), std::ssize(images));
  }
  return all;
}

void calibrate_statistics(ProbeModel& model, const Dataset& dataset, std::span<const std::int64_t> images) {
  constexpr std::size_t batch = 64;
  const NoGrad no_grad;
  model.module->train();
  const std::size_t batches = std::max<std::size_t>(images.size() / batch, 1);
  for (std::size_t i = 0; i < batches; ++i) {
    const BatchNormMomentum momentum(1.0 / static_cast<double>(i + 1));
    const std::size_t begin = i * images.size() / batches, end = (i + 1) * images.size() / batches;
    model.module->features(input_batch(model, dataset, images.subspan(begin, end - begin)));
  }
  model.module->eval();
}

}  // namespace tandem
