#include "tandem/augment/photo_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

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

struct ParsedOperation {
  std::string_view name;
  std::vector<double> numbers;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t end = text.find_last_not_of(blanks);
  return text.substr(begin, end == std::string_view::npos ? 0 : end + 1 - begin);
}

[[noreturn]] void fail_with_usage(std::string_view text) {
  fail(
      "[augment] expected photo, none or operations such as 'crop 0.08 1 0.75 1.333, flip 0.5, jitter 0.4 "
      "0.4 "
      "0.4 0.1, erase 0.25, randaugment 2 9', got '{}'",
      text);
}

ParsedOperation parse_operation(std::string_view part) {
  ParsedOperation operation;
  std::string_view rest = trimmed(part);
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\n"));
    rest = trimmed(rest.substr(word.size()));
    if (operation.name.empty()) {
      operation.name = word;
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) fail_with_usage(part);
    operation.numbers.push_back(number);
  }
  return operation;
}

int to_int(std::string_view part, double number) {
  if (!(number >= 0 && number <= 1e6) || number != std::floor(number)) fail_with_usage(part);
  return static_cast<int>(number);
}

void add_operation(std::string_view part, PhotoRecipe& recipe) {
  const ParsedOperation operation = parse_operation(part);
  const std::string_view name = operation.name;
  const std::vector<double>& numbers = operation.numbers;
  const auto require_count = [&](std::initializer_list<std::size_t> counts) {
    if (std::find(counts.begin(), counts.end(), numbers.size()) == counts.end()) fail_with_usage(part);
  };
  if (name == "crop") {
    require_count({0, 2, 4});
    recipe.fit = PhotoFit::crop;
    if (numbers.size() >= 2) recipe.crop_scale = {numbers[0], numbers[1]};
    if (numbers.size() == 4) recipe.crop_ratio = {numbers[2], numbers[3]};
  } else if (name == "resize") {
    require_count({0});
    recipe.fit = PhotoFit::resize;
  } else if (name == "center") {
    require_count({1});
    recipe.fit = PhotoFit::center;
    recipe.shorter_side = to_int(part, numbers[0]);
  } else if (name == "flip") {
    require_count({0, 1});
    recipe.flip = numbers.empty() ? 0.5 : numbers[0];
  } else if (name == "jitter") {
    require_count({4});
    recipe.jitter = {numbers[0], numbers[1], numbers[2], numbers[3]};
  } else if (name == "erase") {
    require_count({1, 3, 5});
    recipe.erase.probability = numbers[0];
    if (numbers.size() >= 3) recipe.erase.scale = {numbers[1], numbers[2]};
    if (numbers.size() == 5) recipe.erase.ratio = {numbers[3], numbers[4]};
  } else if (name == "randaugment") {
    require_count({0, 2});
    recipe.rand_augment = {2, 9};
    if (!numbers.empty()) recipe.rand_augment = {to_int(part, numbers[0]), to_int(part, numbers[1])};
  } else if (name == "bilinear" || name == "bicubic") {
    require_count({0});
    recipe.filter = name == "bicubic" ? ResizeFilter::bicubic : ResizeFilter::bilinear;
  } else {
    fail_with_usage(part);
  }
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

PhotoRecipe evaluation_photo_recipe(int size, bool eval_crop) {
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  recipe.fit = eval_crop ? PhotoFit::center : PhotoFit::resize;
  if (eval_crop) recipe.shorter_side = size * 8 / 7;
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
  check_bounds("crop", recipe.crop_scale, 1e-6, 1);
  check_bounds("crop", recipe.crop_ratio, 1e-3, 1e3);
  check_number("flip", recipe.flip, 1);
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

PhotoRecipe parse_photo_recipe(std::string_view text, int size) {
  const std::string_view all = trimmed(text);
  if (all == "photo") return training_photo_recipe(size);
  if (all == "none") return evaluation_photo_recipe(size);
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    add_operation(all.substr(begin, end - begin), recipe);
    begin = end + 1;
  }
  check_photo_recipe(recipe);
  return recipe;
}

std::string to_string(const PhotoRecipe& recipe) {
  std::string text = "resize";
  const Bounds &scale = recipe.crop_scale, &ratio = recipe.crop_ratio;
  if (recipe.fit == PhotoFit::crop)
    text = fmt::format("crop {} {} {} {}", scale.min, scale.max, ratio.min, ratio.max);
  else if (recipe.fit == PhotoFit::center)
    text = fmt::format("center {}", recipe.shorter_side);
  if (recipe.filter == ResizeFilter::bicubic) text += ", bicubic";
  if (recipe.flip > 0) text += fmt::format(", flip {}", recipe.flip);
  if (const PhotoJitter& j = recipe.jitter; !j.empty())
    text += fmt::format(", jitter {} {} {} {}", j.brightness, j.contrast, j.saturation, j.hue);
  if (recipe.rand_augment.count > 0)
    text += fmt::format(", randaugment {} {}", recipe.rand_augment.count, recipe.rand_augment.magnitude);
  if (const PhotoErase& e = recipe.erase; e.probability > 0)
    text += fmt::format(", erase {} {} {} {} {}", e.probability, e.scale.min, e.scale.max, e.ratio.min,
                        e.ratio.max);
  return text;
}

bool is_photo_recipe(std::string_view recipe) {
  constexpr std::string_view first_words[]{"photo",  "crop",  "resize",      "center",   "flip",
                                           "jitter", "erase", "randaugment", "bilinear", "bicubic"};
  const std::size_t begin = std::min(recipe.find_first_not_of(" \t\n"), recipe.size());
  const std::string_view word = recipe.substr(begin, recipe.find_first_of(" \t\n,", begin) - begin);
  return std::ranges::find(first_words, word) != std::end(first_words);
}

}  // namespace tandem
