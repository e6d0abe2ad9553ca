#include "tandem/study/check/check_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/host_memory.h"
#include "tandem/files/packed_path.h"
#include "tandem/study/check/odd_images.h"
#include "tandem/study/check/suspects.h"
#include "tandem/study/probe/probe_features.h"

namespace tandem {
namespace {

// The images that were read, decoded when they are asked for.
class CheckedDataset final : public Dataset {
 public:
  CheckedDataset(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t max_pixels)
      : files_(files), max_pixels_(max_pixels) {
    for (std::size_t i = 0; i < images.size(); ++i)
      if (images[i].was_read()) rows_.push_back(static_cast<std::int64_t>(i));
  }

  std::int64_t size() const override { return std::ssize(rows_); }
  Image image(std::int64_t index) const override {
    return load_image_file(files_.path_of(file(index)), {.max_pixels = max_pixels_, .rgb = true});
  }
  std::int32_t label(std::int64_t index) const override { return file(index).label; }
  std::vector<std::string> classes() const override { return files_.classes; }

  // The number of the file of each image.
  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  const CheckedFile& file(std::int64_t index) const {
    return files_.files[static_cast<std::size_t>(rows_[static_cast<std::size_t>(index)])];
  }

  const CheckedFiles& files_;
  std::int64_t max_pixels_;
  std::vector<std::int64_t> rows_;
};

void check_memory(std::int64_t images) {
  constexpr std::int64_t max_features = 4096;  // more than any model here has
  const std::int64_t bytes = images * max_features * 4, free = free_host_bytes();
  check(bytes <= free / 2,
        "[check] the features of {} images need up to {} MiB, half of the free memory is {} MiB", images,
        bytes >> 20, free >> 21);
}

Features features_of(ProbeModel& model, const CheckedDataset& dataset, const CheckProgress& on_progress) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  if (model.calibrates) {
    constexpr std::size_t max_images = 512;
    std::vector<std::int64_t> some;
    for (std::size_t i = 0; i < std::min(max_images, all.size()); ++i)
      some.push_back(all[i * all.size() / std::min(max_images, all.size())]);
    calibrate_statistics(model, dataset, some);
  }
  Features features = compute_features(model, dataset, all, on_progress);
  check(std::ranges::all_of(features.values, [](float value) { return std::isfinite(value); }),
        "[check] {}: expected finite features", model.name);
  return features;
}

}  // namespace

CheckedFeatures check_features(const CheckFeaturesOptions& options, const CheckedFiles& files,
                               std::span<const ImageFacts> images, const Copies& copies,
                               const CheckProgress& on_progress) {
  constexpr std::int64_t default_size = 224;
  ProbeModel model = load_probe_model(
      options.model, {.image_size = options.image_size > 0 ? options.image_size : default_size,
                      .resizes_all = options.image_size > 0});
  model.module->to(options.device);
  const CheckedDataset dataset(files, images, options.max_pixels);
  check_memory(dataset.size());
  const Features features = features_of(model, dataset, on_progress);

  std::vector<std::int64_t> group(images.size());
  std::iota(group.begin(), group.end(), 0);
  for (const CopyGroup& copied : copies.groups)
    for (const std::int64_t file : copied.files) group[static_cast<std::size_t>(file)] = copied.files[0];
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> copy_numbers;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    labels.push_back(dataset.label(i));
    copy_numbers.push_back(group[static_cast<std::size_t>(dataset.rows()[static_cast<std::size_t>(i)])]);
  }
  const LabeledFeatures labeled{
      .x = features, .labels = labels, .copies = copy_numbers, .classes = std::ssize(files.classes)};
  const auto image_of = [&](std::int64_t row) {
    return checked_image(files, images, dataset.rows()[static_cast<std::size_t>(row)]);
  };
  CheckedFeatures result{.model = options.model,
                         .weights = fmt::format("{}, {}", model.info.architecture.model, model.weights),
                         .images = dataset.size(),
                         .accuracy = std::numeric_limits<double>::quiet_NaN()};
  const LabelCheck check_result = check_labels(labeled);
  result.folds = check_result.folds;
  if (result.folds == 0)
    result.note =
        fmt::format("Not searched: two classes with {} or more images each are needed.", label_folds);
  else
    result.accuracy = check_result.accuracy;
  for (const LabelSuspect& suspect : check_result.suspects)
    result.mislabels.push_back({.image = image_of(suspect.row),
                                .suggested = files.classes[static_cast<std::size_t>(suspect.suggested)],
                                .label_probability = suspect.label_probability,
                                .suggested_probability = suspect.suggested_probability});
  for (const FeatureOutlier& outlier : find_outliers(labeled))
    result.outliers.push_back({image_of(outlier.row), outlier.distance});
  return result;
}

}  // namespace tandem
