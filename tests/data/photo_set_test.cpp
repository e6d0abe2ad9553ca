#include "tandem/data/photo_set.h"

#include <gtest/gtest.h>

#include "tandem/data/loader/materialize.h"
#include "tandem/data/loader/photo_source.h"
#include "tests/data/photo_cases.h"

namespace tandem {
namespace {

TEST(PhotoSet, Load_DropsUnreadableFiles) {
  const PhotoFolder folder(9, {0, 4, 5});
  const PhotoRecipe recipe = evaluation_photo_recipe(7, PhotoFit::center);
  const PhotoSet set = load_photo_set(folder.files, folder.labels, {"a", "b", "c"}, recipe);
  ASSERT_EQ(set.images.count(), 6);
  ASSERT_EQ(set.bad.size(), 3u);
  EXPECT_EQ(set.bad[1].name, folder.files[4].string());
  EXPECT_EQ(set.bad[1].reason.find("photo 4"), std::string::npos);  // `name` has the path
  const std::vector<Loaded> expected = folder.expected_epoch(
      {.samples = 9, .batch_size = 9, .shuffle = false, .replace_unreadable = false}, recipe, 0);
  std::int64_t at = 0;
  for (const std::size_t i : {1, 2, 3, 6, 7, 8}) {
    EXPECT_EQ(set.names[static_cast<std::size_t>(at)], folder.files[i].string());
    EXPECT_EQ(set.images.labels.to_vector<std::int32_t>()[static_cast<std::size_t>(at)], folder.labels[i]);
    EXPECT_EQ(set.images.images.slice(0, at, at + 1).to_vector<std::uint8_t>(), expected[i].pixels) << i;
    ++at;
  }
  EXPECT_NE(error_text([&] {
              load_photo_set(folder.files, folder.labels, {"a", "b", "c"}, recipe, {}, OnBadImage::fail);
            }).find("photo 0.png: "),
            std::string::npos);
  const std::vector<std::filesystem::path> bad{folder.files[4]};
  EXPECT_NE(error_text([&] { load_photo_set(bad, {0}, {"a"}, recipe); }).find("got none in 1 files"),
            std::string::npos);
}

TEST(PhotoSet, Store_EqualsItsMaterializedSet) {
  std::vector<Image> photos;
  for (unsigned i = 0; i < 5; ++i) photos.push_back(noise_photo(9 + i, 12, i));
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  const std::vector<std::int32_t> labels{0, 1, 0, 1, 1};
  const PhotoRecipe recipe = evaluation_photo_recipe(6);
  const auto store = std::make_shared<const PhotoStore>(photos, names, labels);
  const PhotoSet set = materialize_named(PhotoDataset(store, {"x", "y"}), recipe);
  EXPECT_TRUE(store->table().decoded());
  EXPECT_EQ(store->table().path(3), "d");
  EXPECT_EQ(copy(store->table().photo(3)), photos[3]);
  DevicePhotos source(store, {.samples = 5, .batch_size = 5, .shuffle = false, .replace_unreadable = false},
                      recipe, cpu_device);
  const SourceBlock block = source.next_block(0, 0, 5);
  EXPECT_EQ(std::vector<std::uint8_t>(block.images, block.images + 5 * 6 * 6 * 3),
            set.images.images.to_vector<std::uint8_t>());
  EXPECT_EQ(std::vector<std::int32_t>(block.labels, block.labels + 5), labels);
}

}  // namespace
}  // namespace tandem
