#include "tandem/augment/photo_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr int most_photo_side = 4096;

void check_bounds(const char* what, const Bounds& bounds, double least, double most) {
  check(std::isfinite(bounds.least) && std::isfinite(bounds.most) && bounds.least >= least &&
            bounds.most <= most && bounds.least <= bounds.most,
        "[augment] {}: expected two numbers in order from {} to {}, got {} to {}", what, least, most,
        bounds.least, bounds.most);
}

void check_number(const char* what, double number, double most) {
  check(number >= 0 && number <= most, "[augment] {}: expected a number from 0 to {}, got {}", what, most,
        number);
}

struct Words {
  std::string_view name;
  std::vector<double> numbers;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t end = text.find_last_not_of(blanks);
  return text.substr(begin, end == std::string_view::npos ? 0 : end + 1 - begin);
}

[[noreturn]] void refuse(std::string_view text) {
  fail(
      "[augment] expected photo, none or operations as in 'crop 0.08 1 0.75 1.333, flip 0.5, jitter 0.4 0.4 "
      "0.4 0.1, erase 0.25, randaugment 2 9', got '{}'",
      text);
}

Words words_of(std::string_view part) {
  Words words;
  std::string_view left = trimmed(part);
  while (!left.empty()) {
    const std::string_view word = left.substr(0, left.find_first_of(" \t\n"));
    left = trimmed(left.substr(word.size()));
    if (words.name.empty()) {
      words.name = word;
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) refuse(part);
    words.numbers.push_back(number);
  }
  return words;
}

int whole_number(std::string_view part, double number) {
  if (!(number >= 0 && number <= 1e6) || number != std::floor(number)) refuse(part);
  return static_cast<int>(number);
}

void parse_part(std::string_view part, PhotoRecipe& recipe) {
  const Words words = words_of(part);
  const std::vector<double>& numbers = words.numbers;
  const auto takes = [&](std::initializer_list<std::size_t> counts) {
    if (std::find(counts.begin(), counts.end(), numbers.size()) == counts.end()) refuse(part);
  };
  if (words.name == "crop") {
    takes({0, 2, 4});
    recipe.fit = PhotoFit::crop;
    if (numbers.size() >= 2) recipe.crop_scale = {numbers[0], numbers[1]};
    if (numbers.size() == 4) recipe.crop_ratio = {numbers[2], numbers[3]};
  } else if (words.name == "resize") {
    takes({0});
    recipe.fit = PhotoFit::resize;
  } else if (words.name == "centre" || words.name == "center") {
    takes({1});
    recipe.fit = PhotoFit::centre;
    recipe.shorter_side = whole_number(part, numbers[0]);
  } else if (words.name == "flip") {
    takes({0, 1});
    recipe.flip = numbers.empty() ? 0.5 : numbers[0];
  } else if (words.name == "jitter") {
    takes({4});
    recipe.jitter = {numbers[0], numbers[1], numbers[2], numbers[3]};
  } else if (words.name == "erase") {
    takes({1, 3, 5});
    recipe.erase.probability = numbers[0];
    if (numbers.size() >= 3) recipe.erase.scale = {numbers[1], numbers[2]};
    if (numbers.size() == 5) recipe.erase.ratio = {numbers[3], numbers[4]};
  } else if (words.name == "randaugment") {
    takes({0, 2});
    recipe.rand_augment = {2, 9};
    if (!numbers.empty())
      recipe.rand_augment = {whole_number(part, numbers[0]), whole_number(part, numbers[1])};
  } else if (words.name == "bilinear" || words.name == "bicubic") {
    takes({0});
    recipe.filter = words.name == "bicubic" ? ResizeFilter::bicubic : ResizeFilter::bilinear;
  } else {
    refuse(part);
  }
}

}  // namespace

PhotoRecipe training_photos(int size) {
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  recipe.fit = PhotoFit::crop;
  recipe.flip = 0.5;
  check_photo_recipe(recipe);
  return recipe;
}

PhotoRecipe evaluation_photos(int size, bool eval_crop) {
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  recipe.fit = eval_crop ? PhotoFit::centre : PhotoFit::resize;
  if (eval_crop) recipe.shorter_side = size * 8 / 7;
  check_photo_recipe(recipe);
  return recipe;
}

void check_photo_recipe(const PhotoRecipe& recipe) {
  check(recipe.height >= 1 && recipe.width >= 1 && recipe.height <= most_photo_side &&
            recipe.width <= most_photo_side,
        "[augment] expected images of 1 to {} pixels a side, got {}×{}", most_photo_side, recipe.height,
        recipe.width);
  check(recipe.fit != PhotoFit::centre || (recipe.shorter_side >= std::max(recipe.height, recipe.width) &&
                                           recipe.shorter_side <= 2 * most_photo_side),
        "[augment] centre: expected a shorter side from {} to {}, got {}",
        std::max(recipe.height, recipe.width), 2 * most_photo_side, recipe.shorter_side);
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
  check_number("randaugment's count", recipe.rand_augment.count, most_rand_augment);
  check_number("randaugment's magnitude", recipe.rand_augment.magnitude, most_magnitude);
}

PhotoRecipe parse_photo_recipe(std::string_view text, int size) {
  const std::string_view all = trimmed(text);
  if (all == "photo") return training_photos(size);
  if (all == "none") return evaluation_photos(size);
  PhotoRecipe recipe;
  recipe.height = recipe.width = size;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    parse_part(all.substr(begin, end - begin), recipe);
    begin = end + 1;
  }
  check_photo_recipe(recipe);
  return recipe;
}

std::string to_string(const PhotoRecipe& recipe) {
  std::string text = "resize";
  const Bounds &scale = recipe.crop_scale, &ratio = recipe.crop_ratio;
  if (recipe.fit == PhotoFit::crop)
    text = fmt::format("crop {} {} {} {}", scale.least, scale.most, ratio.least, ratio.most);
  else if (recipe.fit == PhotoFit::centre)
    text = fmt::format("centre {}", recipe.shorter_side);
  if (recipe.filter == ResizeFilter::bicubic) text += ", bicubic";
  if (recipe.flip > 0) text += fmt::format(", flip {}", recipe.flip);
  if (const PhotoJitter& j = recipe.jitter; !j.empty())
    text += fmt::format(", jitter {} {} {} {}", j.brightness, j.contrast, j.saturation, j.hue);
  if (recipe.rand_augment.count > 0)
    text += fmt::format(", randaugment {} {}", recipe.rand_augment.count, recipe.rand_augment.magnitude);
  if (const PhotoErase& e = recipe.erase; e.probability > 0)
    text += fmt::format(", erase {} {} {} {} {}", e.probability, e.scale.least, e.scale.most, e.ratio.least,
                        e.ratio.most);
  return text;
}

bool is_photo_recipe(std::string_view recipe) {
  constexpr std::string_view first_words[]{"photo",  "crop",  "resize",      "centre",   "center", "flip",
                                           "jitter", "erase", "randaugment", "bilinear", "bicubic"};
  const std::size_t begin = std::min(recipe.find_first_not_of(" \t\n"), recipe.size());
  const std::string_view word = recipe.substr(begin, recipe.find_first_of(" \t\n,", begin) - begin);
  return std::ranges::find(first_words, word) != std::end(first_words);
}

}  // namespace tandem
