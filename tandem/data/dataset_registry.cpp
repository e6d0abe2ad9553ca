#include "tandem/data/dataset_registry.h"

#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/data/cifar10.h"
#include "tandem/data/mnist.h"
#include "tandem/data/synthetic/digits.h"
#include "tandem/data/synthetic/plates_dataset.h"
#include "tandem/data/synthetic/scenes.h"

namespace tandem {
namespace {

auto mnist_format(const std::string& name) {
  return [name](const std::filesystem::path& folder, std::int64_t) { return load_mnist(name, folder); };
}

Registry<DatasetRow>& table() {
  static Registry<DatasetRow> rows(
      "data",
      {
          {.name = "digits",
           .summary = "rendered handwriting, 28x28 gray, 10 classes",
           .load = [](const std::filesystem::path&, std::int64_t train) { return digits_split(train); }},
          {.name = "mnist",
           .summary = "handwritten digits, 28x28 gray, 10 classes",
           .source = mnist_source(),
           .load = mnist_format("mnist")},
          {.name = "fashion-mnist",
           .summary = "articles of clothing, 28x28 gray, 10 classes",
           .source = fashion_mnist_source(),
           .load = mnist_format("fashion-mnist")},
          {.name = "plates",
           .summary = "rendered photographs of cleaned and dirty plates",
           .default_model = "resnet18",
           .load_photos = plates_split,
           .default_photos = 40},
          {.name = "scenes",
           .summary = "rendered patterns, objects and landscapes, RGB, 15 kinds",
           .default_model = "resnet18",
           .load_photos = scenes_split,
           .default_photos = 600},
          {.name = "cifar10",
           .summary = "photographs of animals and vehicles, 32x32 RGB, 10 classes",
           .source = cifar10_source(),
           .load = [](const std::filesystem::path& folder, std::int64_t) { return load_cifar10(folder); },
           .default_model = "cnn"},
      });
  return rows;
}

}  // namespace

const Registry<DatasetRow>& datasets() {
  return table();
}

std::vector<std::string> fetchable() {
  std::vector<std::string> names;
  for (const DatasetRow& row : datasets().rows())
    if (row.source) names.push_back(row.name);
  for (const FetchSource& weights : weights_sources().rows()) names.push_back(weights.name);
  return names;
}

void register_dataset(DatasetRow row) {
  table().add(std::move(row));
}

DataSplit load_dataset(const std::string& name, const FetchOptions& options, std::int64_t train) {
  const DatasetRow& row = datasets().get(name);
  check(!row.is_photographs(), "[data] expected a data set of one image size, got {}", name);
  return row.load(row.source ? fetch_dataset(*row.source, options) : std::filesystem::path(), train);
}

const FetchSource& fetch_source(const std::string& name) {
  if (const DatasetRow* const row = datasets().find(name); row && row->source) return *row->source;
  const FetchSource* const weights = weights_sources().find(name);
  check(weights != nullptr, "[fetch] expected one of {}, got '{}'{}", fetchable_names(), name,
        did_you_mean(name, fetchable()));
  return *weights;
}

std::string fetchable_names() {
  return fmt::format("{}", fmt::join(fetchable(), ", "));
}

std::filesystem::path fetch_dataset(const std::string& name, const FetchOptions& options) {
  return fetch_dataset(fetch_source(name), options);
}

}  // namespace tandem
