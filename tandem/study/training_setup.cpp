#include "tandem/study/training_setup.h"

#include <fmt/ranges.h>

#include <utility>

#include "tandem/core/check.h"
#include "tandem/study/study_case.h"
#include "tandem/train/training_data.h"

namespace tandem {
namespace {

Recipe recipe_for(const std::string& study, const StudyOptions& options) {
  if (!options.augment) return digits_recipe();
  check(!options.augment->empty() && !options.augment->resizes(),
        "[study {}] expected operations for images of one size, such as \"rotate -10 10, shift -2 2\", got "
        "\"{}\"",
        study, options.augment->to_string());
  return options.augment->pixels();
}

// The weights and as many gradients.
double network_values(const std::vector<std::int64_t>& layers) {
  double weights = 0;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    weights += static_cast<double>(layers[i]) * static_cast<double>(layers[i + 1]);
  return 2 * weights;
}

}  // namespace

std::string TrainingSetup::network() const {
  return fmt::format("{}", fmt::join(layers, ","));
}

std::vector<Fact> TrainingSetup::settings() const {
  return {{"data", data.name}, {"augment", to_string(recipe)}, {"layers", network()}};
}

TrainingSetup training_setup(const std::string& study, const StudyOptions& options, DataSplit data) {
  check_image_set(data.train, data.name);
  const std::int64_t inputs = data.train.image_size(), classes = std::ssize(data.train.classes);
  TrainingSetup setup{
      .data = std::move(data), .recipe = recipe_for(study, options), .layers = options.layers};
  if (setup.layers.empty()) setup.layers = {inputs, 200, classes};
  check(setup.layers.size() >= 2 && setup.layers.front() == inputs && setup.layers.back() == classes,
        "[study {}] expected layers from {} inputs ({} images) to {} classes, got {}", study, inputs,
        image_description(setup.data.train), classes, setup.network());
  check_fits(study, setup.network(), network_values(setup.layers));
  return setup;
}

void check_limit(const std::string& study, const StudyOptions& options, const DataSplit& data) {
  check(options.limit <= data.train.count(),
        "[study {}] expected a limit of at most {} training images of {}, got {}", study, data.train.count(),
        data.name, options.limit);
}

}  // namespace tandem
