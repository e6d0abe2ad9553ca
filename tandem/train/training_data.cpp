#include "tandem/train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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
        "[train] expected one of {} or a folder with idx files or photographs, got '{}'{}", datasets().list(),
        data, did_you_mean(data, datasets().names()));
  DataSplit split = load_mnist("mnist", data);
  const fs::path folder = fs::path(data).lexically_normal();
  split.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return split;
}

namespace {

constexpr std::int64_t held_out_stride = 10;

struct HeldOut {
  ImageSet train, validation;
  std::string note = {};
};

// Images 9, 19, 29, … are for validation: spread over the set, which may be sorted by class.
HeldOut hold_out(const ImageSet& all) {
  const std::int64_t count = all.count(), stride = std::min(held_out_stride, count);
  std::vector<std::int64_t> train, validation;
  for (std::int64_t i = 0; i < count; ++i) (i % stride == stride - 1 ? validation : train).push_back(i);
  return {all.select(train), all.select(validation)};
}

HeldOut split_training_set(const ImageSet& all, const TrainOptions& options, const std::string& name) {
  const std::int64_t count = all.count(), wanted = options.validation.value_or(0);
  if (!options.validation) {
    check(count >= 2, "[train] expected two or more training images of {}, got {}", name, count);
    HeldOut sets = hold_out(all);
    sets.note = fmt::format(
        "every {}th training image is held out, {} of {}; they choose the model, the test set "
        "does not",
        held_out_stride, format_count(sets.validation.count()), format_count(count));
    return sets;
  }
  check(wanted < count, "[train] expected validation below the {} training images of {}, got {}", count, name,
        wanted);
  if (wanted == 0) {
    return {all,
            {},
            "no images are held out: the last epoch is kept; the test set is measured and chooses nothing"};
  }
  return {
      all.slice(0, count - wanted), all.slice(count - wanted, count),
      fmt::format("the last {} training images are held out; they choose the model, the test set does not",
                  format_count(wanted))};
}

// So many digits that `limit` are left for training.
std::int64_t digits_to_render(const TrainOptions& options) {
  if (options.limit == 0) return 60000;
  return options.limit + options.validation.value_or(options.limit / (held_out_stride - 1) + 1);
}

}  // namespace

TrainingData load_training_data(const TrainOptions& options, const MessageFunction& on_message) {
  if (is_photo_data(options.data)) return load_photo_data(options, on_message);
  constexpr std::int64_t max_digits = std::int64_t{1} << 24;
  const std::int64_t digits = digits_to_render(options);
  check(options.data != "digits" || digits <= max_digits,
        "[train] expected at most {} digits as limit + validation, got {}", max_digits, digits);
  const DataSplit split = load_split(options.data, options.from, on_message, digits);
  check_image_set(split.train, split.name);
  check_image_set(split.test, split.name);
  const HeldOut sets = split_training_set(split.train, options, split.name);
  const std::int64_t left = sets.train.count(), held_out = sets.validation.count();
  check(options.limit <= left, "[train] expected limit of at most {} training images of {}{}, got {}", left,
        split.name, held_out > 0 ? fmt::format(" beside {} for validation", held_out) : "", options.limit);
  return {.name = split.name,
          .source = options.data,
          .validation_note = sets.note,
          .train = sets.train.slice(0, options.limit > 0 ? options.limit : left),
          .validation = held_out > 0 ? sets.validation : split.test,
          .test = split.test,
          .evaluation_transform = {},
          .held_out = held_out > 0,
          .chooses_model = held_out > 0,
          .validated_on = held_out > 0 ? "validation" : "test",
          .validation_names = {},
          .test_names = {},
          .bad = {}};
}

std::string data_description(const TrainingData& data) {
  if (data.tested_on == "cross-validated")
    return fmt::format("Data: {}, {} images, {}, {} classes", data.name, format_count(data.train.count()),
                       image_description(data.train), data.train.classes.size());
  return fmt::format(
      "Data: {}, {} training{}{} {} images, {}, {} classes", data.name,
      format_count(data.train.count() - data.train.unreadable),
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
