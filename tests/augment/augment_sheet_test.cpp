// Compares the rows with augment_image() and transform_photo(), the labels with the sampled arguments.
#include "tandem/augment/augment_sheet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tandem/augment/augment.h"
#include "tandem/augment/photo.h"
#include "tandem/augment/recipe.h"
#include "tandem/augment/transform.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/example_photo.h"
#include "tests/augment/augment_case.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(SampledStep, ToString_LooksLikeARecipe) {
  const ImageSize size{28, 28, 1};
  EXPECT_EQ(to_string(detail::fixed_rotate(size, -7.26, Interpolation::linear)), "rotate -7.3");
  EXPECT_EQ(to_string(detail::fixed_rotate(size, -0.01, Interpolation::linear)), "rotate 0.0");
  EXPECT_EQ(to_string(detail::fixed_shift(1, -2)), "shift 1 -2");
  EXPECT_EQ(to_string(detail::fixed_skew(-0.123)), "skew -0.12");
  EXPECT_EQ(to_string(detail::fixed_noise(0.07)), "noise 0.07");
  EXPECT_EQ(to_string(detail::fixed_zoom(size, 1.234, Interpolation::linear)), "zoom 1.23");
  EXPECT_EQ(to_string(detail::fixed_crop(size, 0.5, 0, 0)), "crop 0.50");
  EXPECT_EQ(to_string(detail::fixed_flip(true)), "flip 1");
  EXPECT_EQ(to_string(detail::fixed_blur(size, false)), "blur 0");
}

TEST(AugmentSheet, Row_IsTheImageAndItsFirstEpochs) {
  const Image image = example_photo(40, 60);
  const Recipe recipe = compose({random_shift({3, 3}, {-2, -2}), random_noise({0, 0.2})});
  const std::vector<LabeledImage> row = augment_row(image, "a\nb.png", 5, recipe, {.count = 3, .seed = 9});
  ASSERT_EQ(row.size(), 4u);
  EXPECT_EQ(row[0].image, image);
  EXPECT_EQ(row[0].label, "a b.png\n60x40");
  AugmentScratch scratch;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    Image expected = make_image(40, 60, 3);
    augment_image(recipe, {40, 60, 3}, {.seed = 9, .epoch = epoch, .sample = 5}, image.pixels.data(),
                  expected.pixels.data(), scratch);
    EXPECT_EQ(row[epoch + 1].image, expected) << epoch;
    EXPECT_EQ(row[epoch + 1].label.find("shift 3 -2\nnoise 0."), 0u) << row[epoch + 1].label;
  }
  EXPECT_NE(row[1].image, row[2].image);
}

TEST(AugmentSheet, EmptyRecipe_ChangesNothing) {
  const Image image = example_photo(10, 20);
  const std::vector<LabeledImage> row = augment_row(image, "x", 0, {}, {.count = 1});
  EXPECT_EQ(row[1].image, image);
  EXPECT_EQ(row[1].label, "unchanged");
}

TEST(AugmentSheet, LargeImages_AreReduced) {
  const std::vector<LabeledImage> row = augment_row(example_photo(300, 600), "x", 0, digits_recipe());
  EXPECT_EQ(row.size(), 9u);
  for (const LabeledImage& one : row) {
    EXPECT_EQ(one.image.width, 224);
    EXPECT_EQ(one.image.height, 112);
  }
}

TEST(AugmentSheet, PhotoRow_IsThePhotoAndItsFirstEpochs) {
  const Image photo = example_photo(300, 400);
  const PhotoRecipe recipe = Transform::parse("crop, flip 1", 64).photo();
  const std::vector<LabeledImage> row = augment_row(photo, "x.jpg", 5, recipe, {.count = 2, .seed = 9});
  ASSERT_EQ(row.size(), 3u);
  EXPECT_EQ(row[0].label, "x.jpg\n400x300");
  PhotoScratch scratch;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    const detail::PhotoArguments arguments =
        detail::sample_photo(recipe, 300, 400, {.seed = 9, .epoch = epoch, .sample = 5});
    Image expected = make_image(64, 64, 3);
    transform_photo(recipe, arguments, photo, expected.pixels.data(), scratch);
    EXPECT_EQ(row[epoch + 1].image, expected) << epoch;
    EXPECT_EQ(row[epoch + 1].label, fmt::format("{}x{}+{}+{}\nflipped", arguments.box.width,
                                                arguments.box.height, arguments.box.x, arguments.box.y));
  }
}

TEST(AugmentSheet, HasOneRowPerFile) {
  const TempFolder folder;
  save_png(folder / "a.png", example_photo(28, 28));
  save_png(folder / "b.png", example_photo(56, 28));
  const std::filesystem::path files[] = {folder / "a.png", folder / "b.png"};
  const Image sheet = augment_sheet(files, all_operations(), {.count = 2});
  EXPECT_EQ(sheet.width, 20 + 3 * (224 + 20));
  EXPECT_EQ(sheet.height, 20 + 2 * (224 + 8 + 4 * 16 + 3 * 2 + 20));
  // The same file again is another sample, so its arguments differ.
  const std::filesystem::path twice[] = {folder / "a.png", folder / "a.png"};
  const Image same = augment_sheet(twice, all_operations(), {.count = 1});
  const std::int64_t row = 224 + 8 + 4 * 16 + 3 * 2 + 20;
  bool differs = false, original_differs = false;
  for (std::int64_t y = 20; y < 244; ++y) {
    for (std::int64_t x = 20; x < 244; ++x) original_differs |= same.at(y, x) != same.at(y + row, x);
    for (std::int64_t x = 264; x < 488; ++x) differs |= same.at(y, x) != same.at(y + row, x);
  }
  EXPECT_FALSE(original_differs);
  EXPECT_TRUE(differs);
  EXPECT_EQ(augment_sheet(files, training_transform(), {.count = 2}).width, sheet.width);
}

TEST(AugmentSheet, InvalidArguments_Throw) {
  const std::filesystem::path files[] = {"none.png"};
  EXPECT_EQ(error_text([] { augment_sheet({}, digits_recipe()); }),
            "[augment] expected at least one image, got none");
  EXPECT_EQ(error_text([&] { augment_sheet(files, digits_recipe(), {.count = 0}); }),
            "[augment] expected 1 to 100 variants of each image, got 0");
  EXPECT_EQ(error_text([] { augment_row({}, "empty", 0, {}); }),
            "[augment] empty: expected sides of 1 to 65536 pixels, got 0x0");
}

}  // namespace
}  // namespace tandem
