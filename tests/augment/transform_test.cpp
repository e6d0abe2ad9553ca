// The grammar of transforms: parsing, printing, help and invalid texts.
#include "tandem/augment/transform.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/augment/augment_case.h"
#include "tests/augment/photo_case.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

std::string error_of(const char* text, int size = 224) {
  return error_text([&] { Transform::parse(text, size); });
}

TEST(Transform, Default_IsTheIdentity) {
  const Transform none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.resizes());
  EXPECT_EQ(none.to_string(), "none");
  EXPECT_EQ(Transform::parse(" none\n"), none);
  EXPECT_EQ(none.output_size({5, 7, 1}), (ImageSize{5, 7, 1}));
}

TEST(Transform, ToStringThenParse_IsTheSameTransform) {
  for (const char* text :
       {"none",
        "rotate -12 12",
        "rotate 0 360 cubic",
        "rotate -0.5 0.25 nearest",
        "shift -2 2",
        "shift -2 2 0 7",
        "shift -2 2 reflect",
        "shift -2 2 0 7 reflect",
        "flip alternating",
        "flip alternating, shift -2 2 reflect, noise 0 0.1",
        "skew -0.1 0.1",
        "noise 0 0.125",
        "resize",
        "center 256",
        "resize, bicubic, flip 1",
        "zoom 0.8 1.25",
        "zoom 0.25 100 cubic",
        "blur 0.5 ring",
        "blur 1 sobel4",
        "blur 0.5 1 2 1; 2 4 2; 1 2 1",
        "blur 1 gradient 1 -1",
        "flip 0.5",
        "crop 0.25 1, flip 0.25",
        "flip 0.5, zoom 1 2, crop 0.25 1",
        "shift 1 1, rotate 0.1 0.30000000000000004, skew 0 1, noise 1 1, rotate -36000 36000 cubic"})
    EXPECT_EQ(Transform::parse(text).to_string(), text);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Transform transform = random_recipe(i, true);
    EXPECT_EQ(Transform::parse(transform.to_string()).for_one_size(), transform) << transform.to_string();
  }
  for (const std::string& text : photo_recipes) {
    const Transform transform = Transform::parse(text, 32);
    EXPECT_EQ(Transform::parse(transform.to_string(), 32), transform) << text;
  }
}

TEST(Transform, OperationsWithoutEffect_AreLeftOut) {
  for (const char* text :
       {"resize, erase 0 0.1 0.2 0.5 2", "resize, perspective 0 0.7", "perspective 0.3 0, resize",
        "resize, randaugment 0 5", "crop 0.5 1, resize", "center 300, resize", "letterbox 9, resize",
        "resize, jitter 0 0 0 0, vertical_flip 0, rotation 0"}) {
    const Transform transform = Transform::parse(text, 32);
    EXPECT_EQ(transform.to_string(), "resize") << text;
    EXPECT_EQ(transform, Transform::parse("resize", 32)) << text;
  }
  PhotoRecipe recipe = evaluation_photo_recipe(32);
  recipe.erase.scale = {0.1, 0.2};
  EXPECT_EQ(Transform(recipe), Transform::parse("resize", 32));
}

TEST(Transform, Parse_OperationsForImagesOfOneSize) {
  const Transform digits = Transform::parse("digits");
  EXPECT_EQ(digits, Transform(digits_recipe()));
  EXPECT_FALSE(digits.resizes());
  EXPECT_FALSE(digits.empty());
  EXPECT_EQ(digits.output_size({28, 28, 1}), (ImageSize{28, 28, 1}));
  EXPECT_EQ(Transform::parse(" shift -2\t2 ,rotate 1 2 cubic,noise 0 .5,skew -1e-1 1e-1").pixels(),
            compose({random_shift({-2, 2}, {-2, 2}), random_rotate({1, 2}, Interpolation::cubic),
                     random_noise({0, 0.5}), random_skew({-0.1, 0.1})}));
  EXPECT_EQ(Transform::parse("shift 1 2 3 4").pixels(), compose({random_shift({1, 2}, {3, 4})}));
  EXPECT_EQ(Transform::parse("rotate 1 2 linear,"), Transform(compose({random_rotate({1, 2})})));
}

TEST(Transform, Parse_OperationsThatResize) {
  const Transform photo = Transform::parse("photo", 64);
  EXPECT_EQ(photo, training_transform(64));
  EXPECT_TRUE(photo.resizes());
  EXPECT_FALSE(photo.empty());
  EXPECT_EQ(photo.output_size({5, 7, 1}), (ImageSize{64, 64, 3}));
  EXPECT_EQ(photo.to_string(), "crop 0.08 1 0.75 1.3333333333333333, flip 0.5");
  EXPECT_EQ(Transform::parse("resize", 64), evaluation_transform(64));
  EXPECT_EQ(Transform::parse("center 256"), evaluation_transform(224, PhotoFit::center));
  EXPECT_NE(Transform::parse("flip", 32), Transform::parse("flip", 33));
  const PhotoRecipe all =
      Transform::parse("crop 0.2 0.9 0.5 2, flip 0.25, jitter 0.4 0.3 0.2 0.1, erase 0.25, randaugment 2 9")
          .photo();
  EXPECT_EQ(all.crop_scale, (Bounds{0.2, 0.9}));
  EXPECT_EQ(all.crop_ratio, (Bounds{0.5, 2}));
  EXPECT_EQ(all.flip, 0.25);
  EXPECT_EQ(all.jitter, (PhotoJitter{0.4, 0.3, 0.2, 0.1}));
  EXPECT_EQ(all.erase.probability, 0.25);
  EXPECT_EQ(all.rand_augment, (RandAugment{2, 9}));
}

TEST(Transform, Photographs_CanBePaddedTurnedAndWarped) {
  EXPECT_EQ(Transform::parse("letterbox", 64), evaluation_transform(64, PhotoFit::letterbox));
  const char* const text =
      "letterbox 114, vertical_flip 0.25, rotation 30, perspective 0.4 0.5, trivial_augment";
  const PhotoRecipe all = Transform::parse(text).photo();
  EXPECT_EQ(all.fit, PhotoFit::letterbox);
  EXPECT_EQ(all.padding, 114);
  EXPECT_EQ(all.vertical_flip, 0.25);
  EXPECT_EQ(all.rotation, 30);
  EXPECT_EQ(all.perspective, (PhotoPerspective{0.4, 0.5}));
  EXPECT_TRUE(all.trivial_augment);
  EXPECT_EQ(to_string(all), text);
  EXPECT_EQ(to_string(Transform::parse("resize, perspective, vertical_flip").photo()),
            "resize, vertical_flip 0.5, perspective 0.5 0.5");
  EXPECT_EQ(error_of("letterbox 256"), "[augment] letterbox: expected a level from 0 to 255, got 256");
  EXPECT_EQ(error_of("letterbox 1.5"), "[augment] expected 'letterbox [LEVEL]', got 'letterbox 1.5'");
  EXPECT_EQ(error_of("rotation 181"), "[augment] rotation: expected a number from 0 to 180, got 181");
  EXPECT_EQ(error_of("rotation"), "[augment] expected 'rotation DEGREES', got 'rotation'");
  EXPECT_EQ(error_of("perspective 1.5"),
            "[augment] perspective's distortion: expected a number from 0 to 1, got 1.5");
  EXPECT_EQ(error_of("vertical_flip 2"), "[augment] vertical_flip: expected a number from 0 to 1, got 2");
  EXPECT_EQ(error_of("trivial_augment 9"), "[augment] expected 'trivial_augment', got 'trivial_augment 9'");
}

TEST(Transform, CropsAndFlips_BelongToTheFamilyOfTheOthers) {
  const Transform pixels = Transform::parse("flip, rotate -5 5, crop 0.5 1, flip 0.25");
  EXPECT_EQ(pixels.pixels(),
            compose({random_flip(0.5), random_rotate({-5, 5}), random_crop({0.5, 1}), random_flip(0.25)}));
  EXPECT_EQ(pixels.for_one_size(), pixels);
  const Transform photo = Transform::parse("flip, resize, jitter 0.1 0 0 0", 32);
  EXPECT_EQ(photo.photo().flip, 0.5);
  EXPECT_EQ(photo.for_one_size(), photo) << "there is no other meaning";
  EXPECT_TRUE(Transform::parse("crop 0.5 1 0.75 1.5").for_one_size().resizes());
  EXPECT_EQ(error_of("noise 0 1, crop 0.5 1 0.75 1.5")
                .substr(error_of("noise 0 1, crop 0.5 1 0.75 1.5").find("both")),
            "both: noise and crop with ratios");
}

TEST(Transform, OnlyCropsAndFlips_HaveBothMeanings) {
  const Transform both = Transform::parse("crop 0.5 1, flip 0.25", 32);
  EXPECT_TRUE(both.resizes());
  PhotoRecipe recipe = training_photo_recipe(32);
  recipe.crop_scale = {0.5, 1};
  recipe.flip = 0.25;
  EXPECT_EQ(both.photo(), recipe);
  EXPECT_EQ(both.for_photos(48).photo().height, 48);
  EXPECT_EQ(both.for_photos(32), Transform(recipe));
  EXPECT_EQ(both.for_photos(32).to_string(), "crop 0.5 1 0.75 1.3333333333333333, flip 0.25");
  const Transform same_size = both.for_one_size();
  EXPECT_FALSE(same_size.resizes());
  EXPECT_EQ(same_size.pixels(), compose({random_crop({0.5, 1}), random_flip(0.25)}));
  EXPECT_EQ(same_size.to_string(), "crop 0.5 1, flip 0.25");
  EXPECT_EQ(Transform::parse(same_size.to_string()).for_one_size(), same_size);
  EXPECT_EQ(Transform::parse("none").for_one_size(), Transform());
}

TEST(Transform, UnknownWord_ThrowsWithTheKnownOperations) {
  const std::string known =
      "[augment] expected none, digits, photo, or operations: rotate, shift, skew, noise, zoom, blur, crop, "
      "flip, or crop, flip, resize, center, letterbox, vertical_flip, rotation, perspective, jitter, "
      "randaugment, "
      "trivial_augment, erase, bilinear, bicubic; got '";
  EXPECT_EQ(error_of("rotates 1 2"), known + "rotates 1 2'; did you mean 'rotate'?");
  EXPECT_EQ(error_of("digit"), known + "digit'; did you mean 'digits'?");
  for (const char* text : {"turn 1 2", "", "photo 3", "photo, flip"})
    EXPECT_EQ(error_of(text), known + (std::strchr(text, ',') ? "photo" : text) + "'") << text;
  for (const char* text : {",", ",,"}) EXPECT_EQ(error_of(text), known + text + "'");
  EXPECT_EQ(error_of("flip, , crop"), known + "'");
}

TEST(Transform, WrongArguments_ThrowWithTheExpectedOnes) {
  for (const char* text : {"rotate", "rotate 1", "rotate 1 2 3", "rotate 1 2 quintic", "rotate cubic 1 2",
                           "rotate 1 +2", "rotate 1 2 cubic cubic"})
    EXPECT_EQ(error_of(text),
              std::string("[augment] expected 'rotate MIN MAX [nearest|linear|cubic]', got '") + text + "'");
  for (const char* text : {"shift 1 2 3", "shift 1 2 nearest"})
    EXPECT_EQ(error_of(text),
              std::string("[augment] expected 'shift MIN MAX [MIN_Y MAX_Y] [reflect]', got '") + text + "'");
  for (const char* text : {"blur ring", "blur 0.5", "blur x ring", "blur", "zoom 1", "zoom 1 2 3", "skew 1 x",
                           "noise 0 0.1x", "crop 1", "flip much", "randaugment 2 1.5", "resize 3",
                           "jitter 1 2 3", "center", "center 1.5", "erase", "bicubic 3", "bilinear x"}) {
    const std::string name(text, std::strcspn(text, " "));
    EXPECT_EQ(error_of(text).find("[augment] expected '" + name), 0U) << error_of(text);
    EXPECT_NE(error_of(text).find(std::string("', got '") + text + "'"), std::string::npos) << error_of(text);
  }
  EXPECT_EQ(error_of("flip 2"), "[augment] flip: expected a number from 0 to 1, got 2");
  EXPECT_EQ(error_of("flip nan"), "[augment] flip: expected a number from 0 to 1, got nan");
  EXPECT_EQ(error_of("crop 0.5 0.2"),
            "[augment] crop: expected two ascending numbers from 1e-06 to 1, got 0.5 to 0.2");
  EXPECT_EQ(error_of("jitter 0 0 0 0.7"),
            "[augment] jitter of the hue: expected a number from 0 to 0.5, got 0.7");
  EXPECT_EQ(error_of("randaugment 9 9"),
            "[augment] randaugment's count: expected a number from 0 to 4, got 9");
  EXPECT_EQ(error_of("center 100"), "[augment] center: expected a shorter side from 224 to 8192, got 100");
  EXPECT_EQ(error_of("photo", 0), "[augment] expected sides of 1 to 4096 pixels, got 0×0");
}

TEST(Transform, OperationsOfBothFamilies_Throw) {
  EXPECT_EQ(
      error_of("rotate -5 5, flip, resize"),
      "[augment] expected operations for images of one size (rotate, shift, skew, noise, zoom, blur, crop, "
      "flip) or operations that resize (crop, flip, resize, center, letterbox, vertical_flip, rotation, "
      "perspective, "
      "jitter, randaugment, trivial_augment, erase, bilinear, "
      "bicubic), got both: rotate and resize");
  EXPECT_NE(error_of("flip, resize, noise 0 1"), "");
}

TEST(Transform, Help_HasEveryOperationOnce) {
  std::set<std::string_view> names;
  const std::string help = transform_help();
  for (const TransformOperation& operation : transform_operations()) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
    EXPECT_FALSE(operation.help.empty());
    EXPECT_NE(help.find(operation.help), std::string::npos);
  }
  EXPECT_EQ(names.size(), 20U);
  EXPECT_EQ(help.find("rotate MIN MAX [nearest|linear|cubic]: "), 0U);
}

}  // namespace
}  // namespace tandem
