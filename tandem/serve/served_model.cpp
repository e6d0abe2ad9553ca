#include "tandem/serve/served_model.h"

#include <sys/stat.h>

#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/buffer.h"
#include "tandem/device/stream.h"
#include "tandem/text/utf8.h"
#include "tandem/train/evaluation_mode.h"

namespace tandem {
namespace {

// Computes the network once, so that the first request does not wait for its preparation. Weights are packed
// for one precision.
void warm_up(LoadedModel& loaded, MatmulPrecision precision) {
  const ConstantWeights constant;
  const MatmulPrecisionScope scope(precision);
  const InputFormat& format = loaded.format;
  const std::vector<std::uint8_t> black(format.bytes());
  predict_probabilities(*loaded.model.module, loaded.model.info,
                        Tensor::from(black, {1, format.height, format.width, format.channels}));
}

}  // namespace

ModelChoice parse_model_choice(const std::string& text) {
  const std::size_t equals = text.find('=');
  ModelChoice choice;
  choice.path = equals == std::string::npos ? text : text.substr(equals + 1);
  if (equals != std::string::npos) {
    choice.name = text.substr(0, equals);
  } else {
    std::filesystem::path path = choice.path;
    std::error_code ignored;
    if (!path.has_filename()) path = path.parent_path();  // "runs/plates/"
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    if (const auto stem = path.stem(); !is_folder && (stem == "best" || stem == "last"))
      path = std::filesystem::absolute(path).parent_path();  // of a run
    else if (!is_folder)
      path = stem;
    choice.name = path.filename().string();
    if (choice.name == "." || choice.name == "..")
      choice.name = std::filesystem::weakly_canonical(path, ignored).filename().string();
  }
  check(!choice.name.empty() && one_line(choice.name) == choice.name && !choice.path.empty(),
        "[serve] expected a model as PATH or NAME=PATH, got '{}'", one_line(text));
  return choice;
}

ServedModel::ServedModel(ModelChoice choice, Device device, MatmulPrecision precision)
    : choice_(std::move(choice)),
      device_(device),
      precision_(precision),
      loaded_(file_version()),
      current_(load()) {}

std::shared_ptr<LoadedModel> ServedModel::load() const {
  // With a model goes the memory that the pool would keep for its weights.
  const std::shared_ptr<LoadedModel> loaded(new LoadedModel, [device = device_](LoadedModel* model) {
    delete model;
    release_cached_memory(device);
  });
  loaded->model = load_model(choice_.path);
  loaded->format = input_format(loaded->model.info);
  loaded->model.module->to(device_);
  const InputReader checked(loaded->format);  // a transform that cannot be used is found here
  warm_up(*loaded, precision_);
  if (device_.is_cuda()) current_stream(device_).synchronize();
  release_cached_memory(device_);  // of its preparation
  return loaded;
}

std::optional<FileVersion> ServedModel::file_version() const {
  struct stat info {};
  std::error_code ignored;
  std::filesystem::path file = choice_.path;
  if (std::filesystem::is_directory(file, ignored))
    file /= std::filesystem::exists(file / "best.safetensors", ignored) ? "best.safetensors" : "last.ckpt";
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return FileVersion{info.st_dev, info.st_ino,
                     std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_size};
}

std::shared_ptr<LoadedModel> ServedModel::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

ServedModel::Poll ServedModel::poll() {
  const std::optional<FileVersion> version = file_version();
  const bool is_stable = version == std::exchange(seen_, version);
  if (!version || !is_stable || version == loaded_ || version == failed_) return Poll::unchanged;
  try {
    std::shared_ptr<LoadedModel> loaded = load();
    const std::lock_guard lock(mutex_);
    current_ = std::move(loaded);
    loaded_ = version;
    failed_.reset();
    return Poll::reloaded;
  } catch (const std::exception& error) {
    failed_ = version;
    error_ = one_line(error.what());
    return Poll::failed;
  }
}

}  // namespace tandem
