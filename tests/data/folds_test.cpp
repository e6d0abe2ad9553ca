// Stratified folds and subsets of data sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tandem/data/folds.h"
#include "tandem/data/photo_store.h"
#include "tests/files/test_files.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

std::vector<std::int32_t> labels_of(std::initializer_list<std::int32_t> counts) {
  std::vector<std::int32_t> labels;
  std::int32_t label = 0;
  for (const std::int32_t count : counts)
    labels.insert(labels.end(), static_cast<std::size_t>(count), label++);
  return labels;
}

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("class " + std::to_string(i));
  return all;
}

TEST(StratifiedFolds, Sizes_DifferByAtMostOneInAllAndByClass) {
  for (const std::int64_t folds : {2, 3, 10}) {
    const std::vector<std::int32_t> labels = labels_of({10, 23, 0, 11, 98});
    const std::vector<std::int32_t> fold_of = stratified_folds(labels, names(5), folds, 1);
    std::map<std::int32_t, std::int64_t> all;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> by_class;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      ASSERT_GE(fold_of[i], 0);
      ASSERT_LT(fold_of[i], folds);
      ++all[fold_of[i]];
      ++by_class[{labels[i], fold_of[i]}];
    }
    const std::int64_t count = std::ssize(labels);
    for (std::int32_t fold = 0; fold < folds; ++fold) {
      EXPECT_GE(all[fold], count / folds);
      EXPECT_LE(all[fold], (count + folds - 1) / folds);
      for (const std::int32_t label : {0, 1, 3, 4}) {
        const std::int64_t images = std::ranges::count(labels, label);
        EXPECT_GE((by_class[{label, fold}]), images / folds);
        EXPECT_LE((by_class[{label, fold}]), (images + folds - 1) / folds);
      }
    }
  }
}

TEST(StratifiedFolds, Seed_DecidesTheImages) {
  const std::vector<std::int32_t> labels = labels_of({50, 50});
  EXPECT_EQ(stratified_folds(labels, names(2), 5, 1), stratified_folds(labels, names(2), 5, 1));
  EXPECT_NE(stratified_folds(labels, names(2), 5, 1), stratified_folds(labels, names(2), 5, 2));
  std::vector<std::int32_t> in_turn(100);
  for (std::size_t i = 0; i < in_turn.size(); ++i) in_turn[i] = static_cast<std::int32_t>(i % 5);
  EXPECT_NE(stratified_folds(labels, names(2), 5, 1), in_turn);
}

TEST(StratifiedFolds, TooFewOrTooMany_Throw) {
  const std::vector<std::int32_t> labels = labels_of({8, 3});
  EXPECT_EQ(error_text([&] { stratified_folds(labels, names(2), 1, 1); }),
            "[folds] expected two folds or more, got 1");
  EXPECT_EQ(error_text([&] { stratified_folds(labels, names(2), 4, 1); }),
            "[folds] expected at most 3 folds, the images of class 'class 1', got 4");
  EXPECT_EQ(stratified_folds(labels, names(2), 3, 1).size(), 11u);
}

class Tinted : public Dataset {
 public:
  std::int64_t size() const override { return 6; }
  Image image(std::int64_t index) const override {
    return tinted(index % 2 == 1, static_cast<unsigned>(index), 4, 5);
  }
  std::int32_t label(std::int64_t index) const override { return static_cast<std::int32_t>(index % 2); }
  std::vector<std::string> classes() const override { return {"blue", "red"}; }
};

void expect_rows(const Dataset& part, const Dataset& all, const std::vector<std::int64_t>& rows) {
  ASSERT_EQ(part.size(), std::ssize(rows));
  EXPECT_EQ(part.classes(), all.classes());
  for (std::int64_t i = 0; i < part.size(); ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    EXPECT_EQ(part.image(i).pixels, all.image(row).pixels);
    EXPECT_EQ(part.label(i), all.label(row));
  }
}

TEST(Subset, OfAnyDataset_HasTheRowsInOrder) {
  const std::vector<std::int64_t> rows{4, 1, 1, 5};
  const auto own = std::make_shared<const Tinted>();
  expect_rows(*subset(own, rows), *own, rows);
  EXPECT_EQ(subset(own, rows)->describe(0), "sample 4");

  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<Image> images;
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < own->size(); ++i) {
    images.push_back(own->image(i));
    pixels.insert(pixels.end(), images.back().pixels.begin(), images.back().pixels.end());
    labels.push_back(own->label(i));
    paths.push_back("photo " + std::to_string(i));
  }
  const auto in_memory =
      std::make_shared<const ImageDataset>(ImageSet{.images = Tensor::from(pixels, {6, 4, 5, 3}),
                                                    .labels = Tensor::from(labels, {6}),
                                                    .classes = own->classes()});
  expect_rows(*subset(in_memory, rows), *in_memory, rows);
  const auto photos = std::make_shared<const PhotoDataset>(
      std::make_shared<const PhotoStore>(images, paths, labels), own->classes());
  expect_rows(*subset(photos, rows), *photos, rows);
  EXPECT_EQ(subset(photos, rows)->describe(3), "photo 5");
}

TEST(Subset, OfPhotographs_KeepsTheUnreadableOnes) {
  const TempFolder folder;
  write_photos(folder.path(), 3);
  put_bytes(folder / "red/photo 101.png", "no image");
  std::vector<std::filesystem::path> files;
  for (const char* const name : {"blue/photo 100.png", "red/photo 100.png", "red/photo 101.png"})
    files.push_back(folder / name);
  for (const std::int64_t max_bytes : {std::int64_t{0}, std::int64_t{1} << 20}) {
    const auto all = std::make_shared<const PhotoDataset>(files, std::vector<std::int32_t>{0, 1, 1},
                                                          std::vector<std::string>{"blue", "red"},
                                                          PhotoStoreOptions{.max_decoded_bytes = max_bytes});
    const auto part = subset(all, {2, 0});
    EXPECT_EQ(part->image(1).pixels, all->image(0).pixels);
    EXPECT_EQ(part->describe(0), files[2].string());
    EXPECT_THROW(part->image(0), Error);
  }
}

TEST(Subset, RowOutOfRange_Throws) {
  EXPECT_EQ(error_text([&] {
              subset(std::make_shared<const Tinted>(), {0, 6});
            }),
            "[data] expected rows from 0 to below 6, got 6");
}

}  // namespace
}  // namespace tandem
