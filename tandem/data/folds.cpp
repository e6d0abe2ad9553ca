#include "tandem/data/folds.h"

#include <filesystem>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/photo_store.h"
#include "tandem/data/shuffle.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// Any data set, through its virtual functions.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> all, std::vector<std::int64_t> rows)
      : all_(std::move(all)), rows_(std::move(rows)) {}

  std::int64_t size() const override { return std::ssize(rows_); }
  Image image(std::int64_t index) const override { return all_->image(row(index)); }
  std::int32_t label(std::int64_t index) const override { return all_->label(row(index)); }
  std::vector<std::string> classes() const override { return all_->classes(); }
  std::string describe(std::int64_t index) const override { return all_->describe(row(index)); }

 private:
  std::int64_t row(std::int64_t index) const {
    check(index >= 0 && index < size(), "[data] expected a sample from 0 to below {}, got {}", size(), index);
    return rows_[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<const Dataset> all_;
  std::vector<std::int64_t> rows_;
};

std::shared_ptr<const Dataset> photo_subset(const PhotoDataset& all, const std::vector<std::int64_t>& rows) {
  const PhotoStore& photos = *all.photos();
  if (photos.table().decoded())
    return std::make_shared<const PhotoDataset>(std::make_shared<const PhotoStore>(photos, rows),
                                                all.classes());
  std::vector<std::filesystem::path> files;
  std::vector<std::int32_t> labels;
  for (const std::int64_t row : rows) {
    files.emplace_back(photos.table().path(row));
    labels.push_back(photos.table().label(row));
  }
  return std::make_shared<const PhotoDataset>(files, labels, all.classes(),
                                              PhotoStoreOptions{.max_decoded_bytes = 0,
                                                                .on_bad_image = photos.on_bad_image(),
                                                                .decode = photos.table().decode_options()});
}

}  // namespace

std::vector<std::int32_t> stratified_folds(std::span<const std::int32_t> labels,
                                           const std::vector<std::string>& classes, std::int64_t folds,
                                           std::uint64_t seed) {
  check(folds >= 2, "[folds] expected two folds or more, got {}", folds);
  std::vector<std::vector<std::size_t>> samples(classes.size());
  for (std::size_t i = 0; i < labels.size(); ++i)
    samples.at(static_cast<std::size_t>(labels[i])).push_back(i);
  std::vector<std::int32_t> fold_of(labels.size());
  std::int64_t dealt = 0;  // one after the other to the folds, also from class to class
  for (std::size_t c = 0; c < samples.size(); ++c) {
    const std::vector<std::size_t>& own = samples[c];
    if (own.empty()) continue;
    check(folds <= std::ssize(own), "[folds] expected at most {} folds, the images of class '{}', got {}",
          own.size(), one_line(classes[c]), folds);
    const Shuffle order(static_cast<std::uint32_t>(own.size()), seed, static_cast<std::uint32_t>(c));
    for (std::uint32_t i = 0; i < own.size(); ++i)
      fold_of[own[order(i)]] = static_cast<std::int32_t>(dealt++ % folds);
  }
  return fold_of;
}

std::shared_ptr<const Dataset> subset(const std::shared_ptr<const Dataset>& dataset,
                                      const std::vector<std::int64_t>& rows) {
  for (const std::int64_t row : rows)
    check(row >= 0 && row < dataset->size(), "[data] expected rows from 0 to below {}, got {}",
          dataset->size(), row);
  if (const auto* const images = dynamic_cast<const ImageDataset*>(dataset.get()))
    return std::make_shared<const ImageDataset>(images->images().select(rows));
  if (const auto* const photos = dynamic_cast<const PhotoDataset*>(dataset.get()))
    return photo_subset(*photos, rows);
  return std::make_shared<const Subset>(dataset, rows);
}

}  // namespace tandem
