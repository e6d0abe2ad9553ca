// sample_store() of the data sets is in loader/sample_store.cpp.
#include "tandem/data/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/photo_store.h"

namespace tandem {
namespace {

std::map<std::string, DatasetFactory>& factories() {
  static std::map<std::string, DatasetFactory> all;
  return all;
}

void check_index(std::int64_t index, std::int64_t size) {
  check(index >= 0 && index < size, "[data] expected a sample from 0 to below {}, got {}", size, index);
}

}  // namespace

std::string Dataset::describe(std::int64_t index) const {
  return fmt::format("sample {}", index);
}

void register_dataset_factory(std::string name, DatasetFactory factory) {
  check(factory != nullptr, "[data] expected a function as the factory '{}', got none", name);
  const bool is_new = factories().emplace(name, std::move(factory)).second;
  check(is_new, "[data] expected a new name for a data set factory, got '{}', which is registered", name);
}

std::unique_ptr<Dataset> make_dataset(const DatasetFactoryCall& call) {
  const auto found = factories().find(call.name);
  std::vector<std::string> known;
  for (const auto& [name, factory] : factories()) known.push_back(name);
  check(
      found != factories().end(),
      "[data] expected a registered data set factory ({}), got '{}': call register_dataset_factory() before "
      "run_worker_if_asked()",
      known.empty() ? "there is none" : fmt::format("{}", fmt::join(known, ", ")), call.name);
  std::unique_ptr<Dataset> dataset = found->second(call.argument);
  check(dataset != nullptr, "[data] expected a data set from the factory '{}', got none", call.name);
  return dataset;
}

ImageDataset::ImageDataset(ImageSet images) : images_(std::move(images)) {
  check_image_set(images_, "data");
  check(!images_.images.device().is_cuda(), "[data] expected images on the cpu, got images on {}",
        images_.images.device().to_string());
  images_.images = images_.images.contiguous();
  images_.labels = images_.labels.contiguous();
}

Image ImageDataset::image(std::int64_t index) const {
  check_index(index, size());
  Image image =
      make_image(images_.images.size(1), images_.images.size(2), static_cast<int>(images_.images.size(3)));
  const std::uint8_t* const from = images_.images.data<std::uint8_t>() + index * images_.image_size();
  std::copy_n(from, images_.image_size(), image.pixels.begin());
  return image;
}

std::int32_t ImageDataset::label(std::int64_t index) const {
  check_index(index, size());
  return images_.labels.data<std::int32_t>()[index];
}

PhotoDataset::PhotoDataset(const std::vector<std::filesystem::path>& files,
                           const std::vector<std::int32_t>& labels, std::vector<std::string> classes,
                           const PhotoStoreOptions& options)
    : PhotoDataset(std::make_shared<const PhotoStore>(files, labels, options), std::move(classes)) {}

PhotoDataset::PhotoDataset(std::shared_ptr<const PhotoStore> photos, std::vector<std::string> classes)
    : photos_(std::move(photos)), classes_(std::move(classes)) {
  const auto count = static_cast<std::int64_t>(classes_.size());
  for (std::int64_t i = 0; i < size(); ++i)
    check(label(i) >= 0 && label(i) < count, "[data] {}: expected a label from 0 to {}, got {}", describe(i),
          count - 1, label(i));
}

std::int64_t PhotoDataset::size() const {
  return photos_->table().count();
}

Image PhotoDataset::image(std::int64_t index) const {
  check_index(index, size());
  const PhotoTable& table = photos_->table();
  if (!table.decoded()) return PhotoFile(table.path(index), table.decode_options()).decode();
  if (table.location(index).height > 0) return copy(table.photo(index));
  const auto& bad = photos_->bad();
  const auto found = std::ranges::find(bad, static_cast<std::int32_t>(index), &BadSample::sample);
  fail("[decode] {}: {}", table.path(index), found == bad.end() ? "cannot be read" : found->reason);
}

std::int32_t PhotoDataset::label(std::int64_t index) const {
  check_index(index, size());
  return photos_->table().label(index);
}

std::string PhotoDataset::describe(std::int64_t index) const {
  check_index(index, size());
  return photos_->table().path(index);
}

}  // namespace tandem
