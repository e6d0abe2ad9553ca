#include "tandem/train/training_data.h"

#include <fmt/format.h>

#include <filesystem>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/mnist.h"
#include "tandem/text/format_number.h"
#include "tandem/train/photo_data.h"

namespace tandem {

DataSplit load_split(const std::string& data, const std::string& from, const MessageFunction& on_message,
                     std::int64_t digits) {
  namespace fs = std::filesystem;
  if (datasets().find(data)) return load_dataset(data, {.from = from, .on_message = on_message}, digits);
  std::error_code ignored;
  check(fs::is_directory(data, ignored),
        "[train] expected one of {} or a folder with idx files or photographs, got '{}'", datasets().list(),
        data);
  DataSplit split = load_mnist("mnist", data);
  const fs::path folder = fs::path(data).lexically_normal();
  split.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return split;
}

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message) {
  if (is_photo_data(options.data)) return load_photo_data(options, on_message);
  constexpr std::int64_t max_digits = std::int64_t{1} << 24;
  const std::int64_t digits = options.limit > 0 ? options.limit + options.validation : 60000;
  check(options.data != "digits" || digits <= max_digits,
        "[train] expected at most {} digits as limit + validation, got {}", max_digits, digits);
  const DataSplit split = load_split(options.data, options.from, on_message, digits);
  check_image_set(split.train, split.name);
  check_image_set(split.test, split.name);
  const std::int64_t count = split.train.count();
  check(options.validation < count, "[train] expected validation below the {} training images of {}, got {}",
        count, split.name, options.validation);
  const std::int64_t left = count - options.validation;
  check(options.limit <= left, "[train] expected limit of at most {} training images of {}, got {}", left,
        split.name, options.limit);
  return {.name = split.name,
          .source = options.data,
          .train = split.train.slice(0, options.limit > 0 ? options.limit : left),
          .validation = options.validation > 0 ? split.train.slice(left, count) : split.test,
          .test = split.test,
          .evaluation_transform = {},
          .held_out = options.validation > 0,
          .test_best = options.validation > 0,
          .validated_on = options.validation > 0 ? "validation" : "test",
          .test_names = {},
          .bad = {}};
}

std::string data_description(const TrainingData& data) {
  return fmt::format(
      "Data: {}, {} training{}{} {} images, {}, {} classes", data.name, format_count(data.train.count()),
      data.held_out ? fmt::format(", {} validation and ", format_count(data.validation.count())) : " and ",
      format_count(data.test.count()), data.tested_on, image_description(data.train),
      data.train.classes.size());
}

std::string image_description(const TrainingImages& images) {
  const std::int64_t channels = images.channels;
  return fmt::format("{}x{} {}", images.height, images.width,
                     channels == 1   ? "gray"
                     : channels == 3 ? "RGB"
                                     : fmt::format("with {} channels", channels));
}

TrainingImages::TrainingImages(const ImageSet& images) : classes(images.classes) {
  if (!images.images.defined()) return;
  dataset = std::make_shared<const ImageDataset>(images);
  height = images.images.size(1);
  width = images.images.size(2);
  channels = images.images.size(3);
}

TrainingImages::TrainingImages(std::shared_ptr<const Dataset> given, std::int64_t side)
    : TrainingImages(std::move(given), {static_cast<int>(side), static_cast<int>(side), 3}, true) {}

TrainingImages::TrainingImages(std::shared_ptr<const Dataset> given, const ImageSize& size, bool resized)
    : dataset(std::move(given)),
      classes(dataset->classes()),
      photographs(resized),
      height(size.height),
      width(size.width),
      channels(size.channels) {}

}  // namespace tandem
