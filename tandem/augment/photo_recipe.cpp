#include "tandem/augment/photo_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr int max_photo_side = 4096;

void check_bounds(const char* what, const Bounds& bounds, double min, double max) {
  check(std::isfinite(bounds.min) && std::isfinite(bounds.max) && bounds.min >= min && bounds.max <= max &&
            bounds.min <= bounds.max,
        "[augment] {}: expected two ascending numbers from {} to {}, got {} to {}", what, min, max,
        bounds.min, bounds.max);
}

void check_number(const char* what, double number, double max) {
  check(number >= 0 && number <= max, "[augment] {}: expected a number from 0 to {}, got {}", what, max,
        number);
}

}  // namespace

PhotoRecipe training_photo_recipe(int size) {
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  recipe.fit = PhotoFit::crop;
  recipe.flip = 0.5;
  check_photo_recipe(recipe);
  return recipe;
}

PhotoRecipe evaluation_photo_recipe(int size, PhotoFit fit) {
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  recipe.fit = fit;
  if (fit == PhotoFit::center) recipe.shorter_side = size * 8 / 7;
  check_photo_recipe(recipe);
  return recipe;
}

void check_photo_recipe(const PhotoRecipe& recipe) {
  check(recipe.height >= 1 && recipe.width >= 1 && recipe.height <= max_photo_side &&
            recipe.width <= max_photo_side,
        "[augment] expected sides of 1 to {} pixels, got {}×{}", max_photo_side, recipe.height, recipe.width);
  check(recipe.fit != PhotoFit::center || (recipe.shorter_side >= std::max(recipe.height, recipe.width) &&
                                           recipe.shorter_side <= 2 * max_photo_side),
        "[augment] center: expected a shorter side from {} to {}, got {}",
        std::max(recipe.height, recipe.width), 2 * max_photo_side, recipe.shorter_side);
  check(recipe.padding >= 0 && recipe.padding <= 255,
        "[augment] letterbox: expected a level from 0 to 255, got {}", recipe.padding);
  check_bounds("crop", recipe.crop_scale, 1e-6, 1);
  check_bounds("crop", recipe.crop_ratio, 1e-3, 1e3);
  check_number("flip", recipe.flip, 1);
  check_number("vertical_flip", recipe.vertical_flip, 1);
  check_number("rotation", recipe.rotation, 180);
  check_number("perspective's distortion", recipe.perspective.distortion, 1);
  check_number("perspective's probability", recipe.perspective.probability, 1);
  check_number("jitter of brightness", recipe.jitter.brightness, 60);
  check_number("jitter of contrast", recipe.jitter.contrast, 60);
  check_number("jitter of saturation", recipe.jitter.saturation, 60);
  check_number("jitter of the hue", recipe.jitter.hue, 0.5);
  check_number("erase", recipe.erase.probability, 1);
  check_bounds("erase", recipe.erase.scale, 0, 1);
  check_bounds("erase", recipe.erase.ratio, 1e-3, 1e3);
  check_number("randaugment's count", recipe.rand_augment.count, max_rand_augment);
  check_number("randaugment's magnitude", recipe.rand_augment.magnitude, max_magnitude);
}

std::string to_string(const PhotoRecipe& recipe) {
  std::string text = "resize";
  const Bounds &scale = recipe.crop_scale, &ratio = recipe.crop_ratio;
  if (recipe.fit == PhotoFit::crop)
    text = fmt::format("crop {} {} {} {}", scale.min, scale.max, ratio.min, ratio.max);
  else if (recipe.fit == PhotoFit::center)
    text = fmt::format("center {}", recipe.shorter_side);
  else if (recipe.fit == PhotoFit::letterbox)
    text = recipe.padding == 0 ? "letterbox" : fmt::format("letterbox {}", recipe.padding);
  if (recipe.filter == ResizeFilter::bicubic) text += ", bicubic";
  if (recipe.flip > 0) text += fmt::format(", flip {}", recipe.flip);
  if (recipe.vertical_flip > 0) text += fmt::format(", vertical_flip {}", recipe.vertical_flip);
  if (recipe.rotation > 0) text += fmt::format(", rotation {}", recipe.rotation);
  if (const PhotoPerspective& p = recipe.perspective; !p.empty())
    text += fmt::format(", perspective {} {}", p.distortion, p.probability);
  if (const PhotoJitter& j = recipe.jitter; !j.empty())
    text += fmt::format(", jitter {} {} {} {}", j.brightness, j.contrast, j.saturation, j.hue);
  if (recipe.rand_augment.count > 0)
    text += fmt::format(", randaugment {} {}", recipe.rand_augment.count, recipe.rand_augment.magnitude);
  if (recipe.trivial_augment) text += ", trivial_augment";
  if (const PhotoErase& e = recipe.erase; e.probability > 0)
    text += fmt::format(", erase {} {} {} {} {}", e.probability, e.scale.min, e.scale.max, e.ratio.min,
                        e.ratio.max);
  return text;
}

}  // namespace tandem
