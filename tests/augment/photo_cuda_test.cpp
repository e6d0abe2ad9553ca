// Thousands of samples of every recipe: the GPU gives the same bytes as the CPU.
#include <gtest/gtest.h>

#include "tests/augment/photo_case.h"

namespace tandem {
namespace {

class PhotoCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  }

  void expect_equal(const PackedPhotos& photos, const PhotoRecipe& recipe, std::int64_t count) {
    std::vector<std::int32_t> order;
    for (std::int64_t i = 0; i < count; ++i)
      order.push_back(static_cast<std::int32_t>(i * 7 % photos.count()));
    const Tensor samples = Tensor::from(order, {count});
    const auto transformed = [&](Device device, std::int64_t epoch) {
      const Tensor out = Tensor::empty({count, recipe.height, recipe.width, 3}, DType::u8, device);
      transform_photo_batch(recipe, 5, epoch, photos.pixels.to(device), photos.locations.to(device),
                            samples.to(device), out);
      return out.to_vector<std::uint8_t>();
    };
    // Several epochs, so that repeated samples get different arguments.
    for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
      const std::vector<std::uint8_t> expected = transformed(cpu_device, epoch),
                                      actual = transformed(cuda_device(), epoch);
      ASSERT_TRUE(actual == expected) << to_string(recipe) << ", epoch " << epoch;
    }
  }
};

const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{40, 50},   {90, 33},  {7, 5},    {1, 1},
                                                                  {300, 200}, {31, 200}, {1, 700},  {800, 1},
                                                                  {224, 224}, {33, 47},  {500, 500}};

TEST_F(PhotoCuda, EveryRecipe_EqualsCpu) {
  const PackedPhotos photos = pack_photos(sizes);
  for (const std::string& text : photo_recipes) expect_equal(photos, Transform::parse(text, 32).photo(), 256);
}

TEST_F(PhotoCuda, OtherOutputSizes_EqualCpu) {
  const PackedPhotos photos = pack_photos(sizes);
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {33, 65}, {224, 224}, {7, 600}}) {
    PhotoRecipe recipe =
        Transform::parse("crop, flip, jitter 0.4 0.4 0.4 0.1, randaugment 2 15, erase 0.3").photo();
    recipe.height = height, recipe.width = width;
    expect_equal(photos, recipe, 44);
  }
}

TEST_F(PhotoCuda, LargeReductions_EqualCpu) {
  const PackedPhotos photos = pack_photos({{900, 700}, {4, 1500}, {2, 2}, {1000, 1000}});
  for (const char* text : {"photo", "resize", "center 16", "letterbox 9", "crop, bicubic"})
    expect_equal(photos, Transform::parse(text, 14).photo(), 40);
}

TEST_F(PhotoCuda, MissingSamples_AreBlack) {
  const PackedPhotos photos = pack_photos({{40, 50}, {2, 2}, {30, 30}});
  const PhotoRecipe recipe = training_photo_recipe(16);
  const Tensor out = Tensor::empty({3, 16, 16, 3}, DType::u8, cuda_device());
  transform_photo_batch(recipe, 1, 0, photos.pixels.to(cuda_device()), photos.locations.to(cuda_device()),
                        Tensor::from(std::vector<std::int32_t>{-1, 3, 1}, {3}).to(cuda_device()), out);
  for (const std::uint8_t level : out.to_vector<std::uint8_t>()) ASSERT_EQ(level, 0);
}

}  // namespace
}  // namespace tandem
