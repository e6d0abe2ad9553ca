// The GPU's photographs against the CPU's, thousands of draws of every recipe: the same bytes, or a level
// apart where a weight's last bit was rounded the other way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/augment/photo_case.h"

namespace tandem {
namespace {

class PhotoCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  }

  void expect_equal(const PhotoShelf& shelf, const PhotoRecipe& recipe, std::int64_t count) {
    std::vector<std::int32_t> order;
    for (std::int64_t i = 0; i < count; ++i)
      order.push_back(static_cast<std::int32_t>(i * 7 % shelf.count()));
    const Tensor samples = Tensor::from(order, {count});
    const auto made = [&](Device device, std::int64_t epoch) {
      const Tensor out = Tensor::empty({count, recipe.height, recipe.width, 3}, DType::u8, device);
      photo_batch(recipe, 5, epoch, shelf.pixels.to(device), shelf.places.to(device), samples.to(device),
                  out);
      return out.to_vector<std::uint8_t>();
    };
    // An epoch an image: what is drawn differs though the samples come again.
    std::int64_t different = 0;
    for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
      const std::vector<std::uint8_t> expected = made(cpu_device, epoch), found = made(cuda_device(), epoch);
      int greatest = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        greatest = std::max(greatest, std::abs(found[i] - expected[i]));
        different += found[i] != expected[i];
      }
      ASSERT_LE(greatest, 1) << to_string(recipe) << ", epoch " << epoch;
    }
    RecordProperty("bytes_that_differ", std::to_string(different));
  }
};

const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{40, 50},   {90, 33},  {7, 5},    {1, 1},
                                                                  {300, 200}, {31, 200}, {1, 700},  {800, 1},
                                                                  {224, 224}, {33, 47},  {500, 500}};

TEST_F(PhotoCuda, EveryRecipeGivesTheBytesOfTheCpu) {
  const PhotoShelf shelf = photo_shelf(sizes);
  for (const std::string& text : photo_recipes) expect_equal(shelf, parse_photo_recipe(text, 32), 256);
}

TEST_F(PhotoCuda, ImagesOfOtherSidesToo) {
  const PhotoShelf shelf = photo_shelf(sizes);
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {33, 65}, {224, 224}, {7, 600}}) {
    PhotoRecipe recipe =
        parse_photo_recipe("crop, flip, jitter 0.4 0.4 0.4 0.1, randaugment 2 15, erase 0.3");
    recipe.height = height, recipe.width = width;
    expect_equal(shelf, recipe, 44);
  }
}

TEST_F(PhotoCuda, LargeReductionsAreComputedPixelByPixel) {
  const PhotoShelf shelf = photo_shelf({{900, 700}, {4, 1500}, {2, 2}, {1000, 1000}});
  for (const char* text : {"photo", "none", "centre 16", "crop, bicubic"})
    expect_equal(shelf, parse_photo_recipe(text, 14), 40);
}

TEST_F(PhotoCuda, SamplesThatAreNotThereAreBlack) {
  const PhotoShelf shelf = photo_shelf({{40, 50}, {2, 2}, {30, 30}});
  const PhotoRecipe recipe = training_photos(16);
  const Tensor out = Tensor::empty({3, 16, 16, 3}, DType::u8, cuda_device());
  photo_batch(recipe, 1, 0, shelf.pixels.to(cuda_device()), shelf.places.to(cuda_device()),
              Tensor::from(std::vector<std::int32_t>{-1, 3, 1}, {3}).to(cuda_device()), out);
  for (const std::uint8_t level : out.to_vector<std::uint8_t>()) ASSERT_EQ(level, 0);
}

}  // namespace
}  // namespace tandem
