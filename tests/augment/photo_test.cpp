// Compares photo transforms with PIL (tests/golden/make_photo.py), and batches with single photographs.
#include "tandem/augment/photo.h"
#include "tandem/augment/transform.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tandem/augment/photo_op.h"
#include "tests/augment/photo_case.h"
#include "tests/core/error_text.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

using detail::PhotoOp;
using detail::PhotoOpKind;

PhotoOpKind kind_of(const std::string& name) {
  static const std::map<std::string, PhotoOpKind> kinds = {
      {"shear_x", PhotoOpKind::shear_x},         {"shear_y", PhotoOpKind::shear_y},
      {"translate_x", PhotoOpKind::translate_x}, {"translate_y", PhotoOpKind::translate_y},
      {"rotate", PhotoOpKind::rotate},           {"brightness", PhotoOpKind::brightness},
      {"saturation", PhotoOpKind::saturation},   {"contrast", PhotoOpKind::contrast},
      {"sharpness", PhotoOpKind::sharpness},     {"posterize", PhotoOpKind::posterize},
      {"solarize", PhotoOpKind::solarize},       {"auto_contrast", PhotoOpKind::auto_contrast},
      {"equalize", PhotoOpKind::equalize},       {"identity", PhotoOpKind::identity}};
  return kinds.at(name);
}

using Levels = std::vector<std::uint8_t>;

int max_difference(const Levels& a, const Levels& b) {
  EXPECT_EQ(a.size(), b.size());
  int max = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) max = std::max(max, std::abs(a[i] - b[i]));
  return max;
}

PhotoOp perspective_of(const std::vector<std::vector<double>>& corners, int height, int width) {
  detail::Point points[4];
  for (std::size_t i = 0; i < 4; ++i) points[i] = {corners.at(i).at(0), corners.at(i).at(1)};
  return detail::perspective_op(points, height, width);
}

Levels result_of(const golden::Case& one) {
  const golden::Array& input = one.array("image");
  const int height = static_cast<int>(input.shape[0]), width = static_cast<int>(input.shape[1]);
  Levels image = input.values<std::uint8_t>();
  const auto& params = one.params;
  const std::string op = params.at("op");
  if (op == "center" || op == "flip" || op == "vertical_flip") {
    PhotoRecipe recipe = evaluation_photo_recipe(params.value("size", 224));
    if (op == "flip") recipe.flip = 1;
    if (op == "vertical_flip") {  // in the size of the photograph
      recipe.vertical_flip = 1;
      recipe.height = height;
      recipe.width = width;
    }
    if (op == "center") {
      recipe.fit = PhotoFit::center;
      recipe.shorter_side = params.at("side");
      if (params.at("filter") == "bicubic") recipe.filter = ResizeFilter::bicubic;
    }
    Levels out(static_cast<std::size_t>(3 * recipe.height * recipe.width));
    PhotoScratch scratch;
    transform_photo(recipe, RandomKey{}, ImageView(image.data(), height, width, 3, 3 * width), out.data(),
                    scratch);
    return out;
  }
  PhotoOp photo_op;
  if (op == "hue")
    photo_op = {.kind = PhotoOpKind::hue, .value = params.at("turn").get<int>() & 255};
  else if (op == "rotation")
    photo_op = detail::rotation_op(params.at("degrees"), height, width);
  else if (op == "perspective")
    photo_op = perspective_of(params.at("corners"), height, width);
  else if (op == "factor")
    photo_op = {.kind = kind_of(params.at("kind")), .value = detail::to_fixed(params.at("factor"))};
  else
    photo_op = detail::augment_op(
        kind_of(params.at("kind")), params.at("magnitude").get<int>() / 30.0, params.at("negative"),
        op == "rand_augment" ? detail::rand_augment_ranges(height, width) : detail::trivial_augment_ranges(),
        height, width);
  std::vector<std::uint8_t> copy;
  detail::apply_photo_op(photo_op, height, width, image.data(), copy);
  return image;
}

// One level of tolerance where PIL blends in floats and truncates.
TEST(Photo, EqualsPilAndTorchvision) {
  for (const char* golden : {"photo", "torchvision"}) {
    int count = 0;
    for (const golden::Case& one : golden::load(golden)) {
      const std::string op = one.params.at("op"), kind = one.params.value("kind", "");
      const bool blends = kind == "brightness" || kind == "contrast" || kind == "saturation" ||
                          kind == "sharpness" || kind == "auto_contrast" || op == "perspective";
      EXPECT_LE(max_difference(result_of(one), one.array("expected").values<std::uint8_t>()), blends ? 1 : 0)
          << one.name;
      ++count;
    }
    EXPECT_GE(count, 300);
  }
}

TEST(Photo, PerspectiveWithoutAMap_ChangesNothing) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 9}, {9, 1}}) {
    const Image photo = noise_photo(height, width, 3);
    PhotoRecipe recipe = Transform::parse("resize, perspective 1 1").photo();
    recipe.height = height, recipe.width = width;
    PhotoScratch scratch;
    Levels out(photo.pixels.size());
    transform_photo(recipe, RandomKey{.seed = 4}, photo, out.data(), scratch);
    EXPECT_EQ(out, photo.pixels);
  }
}

TEST(Photo, Letterbox_EqualsImageOpsPad) {
  PhotoScratch scratch;
  for (const golden::Case& one : golden::load("letterbox")) {
    PhotoRecipe recipe =
        Transform::parse(fmt::format("letterbox {}", one.params.at("level").get<int>())).photo();
    recipe.height = one.params.at("height");
    recipe.width = one.params.at("width");
    if (one.params.at("filter") == "bicubic") recipe.filter = ResizeFilter::bicubic;
    const golden::Array& input = one.array("image");
    const Levels image = input.values<std::uint8_t>(),
                 expected = one.array("expected").values<std::uint8_t>();
    const ImageView photo(image.data(), input.shape[0], input.shape[1], 3, 3 * input.shape[1]);
    Levels out(expected.size());
    transform_photo(recipe, RandomKey{}, photo, out.data(), scratch);
    EXPECT_EQ(out, expected) << one.name;
    recipe.flip = 1;
    transform_photo(recipe, RandomKey{}, photo, out.data(), scratch);
    for (int y = 0; y < recipe.height; ++y)
      for (int x = 0; x < 3 * recipe.width; ++x) {
        const int mirrored = 3 * (recipe.width - 1 - x / 3) + x % 3;
        ASSERT_EQ(out[static_cast<std::size_t>(3 * recipe.width * y + x)],
                  expected[static_cast<std::size_t>(3 * recipe.width * y + mirrored)])
            << one.name;
      }
  }
}

TEST(Photo, CropAndErase_UseTheSampledBoxes) {
  const Image photo = noise_photo(50, 70, 1);
  PhotoRecipe recipe = Transform::parse("crop, flip 1, erase 1", 16).photo();
  PhotoScratch scratch;
  Levels out(3 * 16 * 16);
  for (std::uint32_t sample = 0; sample < 50; ++sample) {
    const detail::PhotoArguments arguments =
        detail::sample_photo(recipe, 50, 70, {.seed = 9, .sample = sample});
    transform_photo(recipe, arguments, photo, out.data(), scratch);
    const Image expected = resize(crop(photo, arguments.box), 16, 16);
    ASSERT_GT(arguments.erase.width, 0);
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 16; ++x)
        for (int c = 0; c < 3; ++c) {
          const bool erased = x >= arguments.erase.x && x < arguments.erase.x + arguments.erase.width &&
                              y >= arguments.erase.y && y < arguments.erase.y + arguments.erase.height;
          ASSERT_EQ(out[static_cast<std::size_t>(3 * (16 * y + x) + c)],
                    erased ? recipe.erase.color[c] : expected.at(y, 15 - x, c));
        }
  }
}

TEST(Photo, ExtremeAspectRatios_AreFitted) {
  PhotoScratch scratch;
  for (const auto& [height, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 5000}, {5000, 1}})
    for (const char* text : {"photo", "resize", "center 256", "letterbox",
                             "crop, bicubic, randaugment 4 30, jitter 1 1 1 0.5"}) {
      const PhotoRecipe recipe = Transform::parse(text).photo();
      const Image photo = noise_photo(height, width, 5);
      Levels out(3 * 224 * 224);
      transform_photo(recipe, RandomKey{.seed = 1}, photo, out.data(), scratch);
      if (recipe.fit == PhotoFit::letterbox && height != width) {
        EXPECT_EQ(out.front(), 0);  // a line of one pixel in the middle
        EXPECT_GT(std::ranges::count_if(out, [](std::uint8_t level) { return level > 0; }), 224);
      }
      if (height * width == 1 && recipe.fit != PhotoFit::crop) {
        EXPECT_TRUE(std::equal(photo.pixels.begin(), photo.pixels.end(), out.end() - 3));
      }
    }
}

TEST(Photo, Batch_EqualsSinglePhotographs) {
  const PackedPhotos photos = pack_photos({{40, 50}, {90, 33}, {7, 5}, {1, 1}, {60, 60}, {31, 200}});
  const std::vector<std::int32_t> order = {0, 3, 5, 1, 4, 1, 2, 0, 5};
  const auto count = static_cast<std::int64_t>(order.size());
  for (const std::string& text : photo_recipes) {
    const PhotoRecipe recipe = Transform::parse(text, 24).photo();
    const Tensor out = Tensor::empty({count, 24, 24, 3}, DType::u8);
    transform_photo_batch(recipe, 11, 2, photos.pixels, photos.locations, Tensor::from(order, {count}), out);
    PhotoScratch scratch;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Image& photo = photos.photos[static_cast<std::size_t>(order[i])];
      Levels expected(3 * 24 * 24);
      const RandomKey key{.seed = 11, .epoch = 2, .sample = static_cast<std::uint32_t>(order[i])};
      if (order[i] != 4)  // the missing one
        transform_photo(recipe, key, photo, expected.data(), scratch);
      const std::uint8_t* actual = out.data<std::uint8_t>() + i * expected.size();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), actual)) << text << ", image " << i;
    }
  }
}

TEST(Photo, InvalidArguments_Throw) {
  const PackedPhotos photos = pack_photos({{4, 5}, {2, 2}, {3, 3}});
  const PhotoRecipe recipe = training_photo_recipe(8);
  const Tensor out = Tensor::empty({1, 8, 8, 3}, DType::u8);
  const auto text = [&](std::vector<std::int32_t> samples, const Tensor& to, std::int64_t epoch = 0) {
    const auto count = static_cast<std::int64_t>(samples.size());
    return error_text([&] {
      transform_photo_batch(recipe, 1, epoch, photos.pixels, photos.locations, Tensor::from(samples, {count}),
                            to);
    });
  };
  EXPECT_EQ(text({3}, out), "[photo] expected samples from 0 to below 3, got 3 at position 0");
  EXPECT_EQ(text({-1}, out), "[photo] expected samples from 0 to below 3, got -1 at position 0");
  EXPECT_EQ(text({0, 1}, out),
            "[photo] expected an output of u8 in shape [2, 8, 8, 3], got [1, 8, 8, 3] of u8");
  EXPECT_EQ(text({0}, out, -1), "[photo] expected an epoch from 0 to 4294967295, got -1");
}

}  // namespace
}  // namespace tandem
