// The grammar of transforms: one table of operations, from which parsing, error texts and help are made.
#include "tandem/augment/transform.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "tandem/augment/own_operation_table.h"
#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"

namespace tandem {
namespace {

using Words = std::span<const std::string_view>;

// What the operations parsed so far make, in both families.
struct ParsedTransform {
  std::vector<AugmentStep> steps;
  PhotoRecipe photo;
  std::string_view keeps_size, resizes;  // the first operation that belongs to this family only
};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0;
       (begin = text.find_first_not_of(separators, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Nothing unless every word is a number.
std::optional<std::vector<double>> numbers_of(Words words) {
  std::vector<double> numbers;
  for (const std::string_view word : words) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

// The numbers if there are as many as one of `counts`.
std::optional<std::vector<double>> numbers_of(Words words, std::initializer_list<std::size_t> counts) {
  if (std::find(counts.begin(), counts.end(), words.size()) == counts.end()) return std::nullopt;
  return numbers_of(words);
}

std::optional<int> whole_number(double number) {
  if (!(number >= 0 && number <= 1e6) || number != std::floor(number)) return std::nullopt;
  return static_cast<int>(number);
}

// The functions of the operations take the words after the name; false: they do not match the arguments.

// MIN MAX [nearest|linear|cubic]
bool add_interpolated(AugmentStep (*make)(Bounds, Interpolation), Words words, ParsedTransform& to) {
  Interpolation interpolation = Interpolation::linear;
  if (words.size() == 3) {
    if (words[2] == "nearest")
      interpolation = Interpolation::nearest;
    else if (words[2] == "cubic")
      interpolation = Interpolation::cubic;
    else if (words[2] != "linear")
      return false;
    words = words.first(2);
  }
  const auto n = numbers_of(words, {2});
  if (n) to.steps.push_back(make({(*n)[0], (*n)[1]}, interpolation));
  return n.has_value();
}

bool add_rotate(Words words, ParsedTransform& to) {
  return add_interpolated(random_rotate, words, to);
}

bool add_zoom(Words words, ParsedTransform& to) {
  return add_interpolated(random_zoom, words, to);
}

bool add_blur(Words words, ParsedTransform& to) {
  const auto n = words.size() >= 2 ? numbers_of(words.first(1)) : std::nullopt;
  if (n)
    to.steps.push_back(
        random_blur((*n)[0], blur_kernel(fmt::format("{}", fmt::join(words.subspan(1), " ")))));
  return n.has_value();
}

bool add_shift(Words words, ParsedTransform& to) {
  const bool reflects = !words.empty() && words.back() == "reflect";
  const auto n = numbers_of(words.first(words.size() - (reflects ? 1 : 0)), {2, 4});
  if (!n) return false;
  const Bounds dx{(*n)[0], (*n)[1]}, dy = n->size() == 4 ? Bounds{(*n)[2], (*n)[3]} : dx;
  to.steps.push_back(reflects ? random_reflected_shift(dx, dy) : random_shift(dx, dy));
  return true;
}

bool add_skew(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {2});
  if (n) to.steps.push_back(random_skew({(*n)[0], (*n)[1]}));
  return n.has_value();
}

bool add_noise(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {2});
  if (n) to.steps.push_back(random_noise({(*n)[0], (*n)[1]}));
  return n.has_value();
}

bool add_crop(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {0, 2, 4});
  if (!n) return false;
  to.photo.fit = PhotoFit::crop;
  if (n->size() >= 2) to.photo.crop_scale = {(*n)[0], (*n)[1]};
  to.steps.push_back(random_crop(to.photo.crop_scale));
  if (n->size() < 4) return true;
  to.photo.crop_ratio = {(*n)[2], (*n)[3]};
  to.resizes = "crop with ratios";
  return true;
}

bool add_resize(Words words, ParsedTransform& to) {
  to.photo.fit = PhotoFit::resize;
  return words.empty();
}

bool add_center(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {1});
  const std::optional<int> side = n ? whole_number((*n)[0]) : std::nullopt;
  if (!side) return false;
  to.photo.fit = PhotoFit::center;
  to.photo.shorter_side = *side;
  return true;
}

bool add_letterbox(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {0, 1});
  const std::optional<int> level = !n ? std::nullopt : n->empty() ? 0 : whole_number((*n)[0]);
  if (!level) return false;
  to.photo.fit = PhotoFit::letterbox;
  to.photo.padding = *level;
  return true;
}

bool add_flip(Words words, ParsedTransform& to) {
  if (words.size() == 1 && words[0] == "alternating") {
    to.steps.push_back(alternating_flip());
    to.keeps_size = "flip alternating";
    return true;
  }
  const auto n = numbers_of(words, {0, 1});
  if (!n) return false;
  to.photo.flip = n->empty() ? 0.5 : (*n)[0];
  to.steps.push_back(random_flip(to.photo.flip));
  return true;
}

bool add_vertical_flip(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {0, 1});
  if (n) to.photo.vertical_flip = n->empty() ? 0.5 : (*n)[0];
  return n.has_value();
}

bool add_rotation(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {1});
  if (n) to.photo.rotation = (*n)[0];
  return n.has_value();
}

bool add_perspective(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {0, 1, 2});
  if (!n) return false;
  to.photo.perspective = {.distortion = n->empty() ? 0.5 : (*n)[0],
                          .probability = n->size() < 2 ? 0.5 : (*n)[1]};
  return true;
}

bool add_trivial_augment(Words words, ParsedTransform& to) {
  to.photo.trivial_augment = true;
  return words.empty();
}

bool add_jitter(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {4});
  if (n) to.photo.jitter = {(*n)[0], (*n)[1], (*n)[2], (*n)[3]};
  return n.has_value();
}

bool add_rand_augment(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {0, 2});
  if (!n) return false;
  to.photo.rand_augment = {2, 9};
  if (n->empty()) return true;
  const std::optional<int> count = whole_number((*n)[0]), magnitude = whole_number((*n)[1]);
  if (count && magnitude) to.photo.rand_augment = {*count, *magnitude};
  return count && magnitude;
}

bool add_erase(Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {1, 3, 5});
  if (!n) return false;
  to.photo.erase.probability = (*n)[0];
  if (n->size() >= 3) to.photo.erase.scale = {(*n)[1], (*n)[2]};
  if (n->size() == 5) to.photo.erase.ratio = {(*n)[3], (*n)[4]};
  return true;
}

bool add_bilinear(Words words, ParsedTransform& to) {
  to.photo.filter = ResizeFilter::bilinear;
  return words.empty();
}

bool add_bicubic(Words words, ParsedTransform& to) {
  to.photo.filter = ResizeFilter::bicubic;
  return words.empty();
}

struct OperationRow : TransformOperation {
  bool (*add)(Words, ParsedTransform&);
};

constexpr OperationRow operations[] = {
    {{"rotate", "MIN MAX [nearest|linear|cubic]", "degrees, and how it reads between pixels", true, false},
     add_rotate},
    {{"shift", "MIN MAX [MIN_Y MAX_Y] [reflect]",
      "whole pixels to the left and upwards; what comes in is 0, or the mirrored image", true, false},
     add_shift},
    {{"skew", "MIN MAX", "tilt, in columns per row", true, false}, add_skew},
    {{"noise", "MIN MAX", "uniform noise, as a fraction of full scale", true, false}, add_noise},
    {{"zoom", "MIN MAX [nearest|linear|cubic]", "factor about the center, above 1 enlarges", true, false},
     add_zoom},
    {{"blur", "PROBABILITY KERNEL", "ring, another filter, or numbers: 1 2 1; 2 4 2; 1 2 1", true, false},
     add_blur},
    {{"crop", "[MIN MAX [MIN_RATIO MAX_RATIO]]",
      "a random box, resized: fraction of the area, width by height", true, true},
     add_crop},
    {{"flip", "[PROBABILITY|alternating]",
      "horizontal, 0.5 by default; alternating: each image in every second epoch", true, true},
     add_flip},
    {{"resize", "", "the whole image, resized without keeping its aspect ratio", false, true}, add_resize},
    {{"center", "N", "the shorter side resized to N, then a center crop", false, true}, add_center},
    {{"letterbox", "[LEVEL]", "the whole image with its aspect ratio kept, centered on gray; 0 by default",
      false, true},
     add_letterbox},
    {{"vertical_flip", "[PROBABILITY]", "0.5 by default", false, true}, add_vertical_flip},
    {{"rotation", "DEGREES", "by up to DEGREES to either side, what comes in is black", false, true},
     add_rotation},
    {{"perspective", "[DISTORTION [PROBABILITY]]",
      "corners move inwards by up to this share, 0.5 0.5 by default", false, true},
     add_perspective},
    {{"jitter", "BRIGHTNESS CONTRAST SATURATION HUE", "torchvision's ColorJitter", false, true}, add_jitter},
    {{"randaugment", "[COUNT MAGNITUDE]", "COUNT random operations at MAGNITUDE of 30, 2 9 by default", false,
      true},
     add_rand_augment},
    {{"trivial_augment", "", "torchvision's TrivialAugmentWide: one random operation of random strength",
      false, true},
     add_trivial_augment},
    {{"erase", "PROBABILITY [MIN MAX [MIN_RATIO MAX_RATIO]]", "a box filled with one color", false, true},
     add_erase},
    {{"bilinear", "", "filter for resizing, the default", false, true}, add_bilinear},
    {{"bicubic", "", "filter for resizing", false, true}, add_bicubic}};

std::vector<std::string_view> operation_names(bool TransformOperation::*family) {
  std::vector<std::string_view> names;
  for (const TransformOperation& operation : transform_operations())
    if (operation.*family) names.push_back(operation.name);
  return names;
}

[[noreturn]] void fail_unknown(std::string_view text) {
  std::vector<std::string> names{"none", "digits", "photo"};
  for (const TransformOperation& operation : transform_operations()) names.emplace_back(operation.name);
  fail("[augment] expected none, digits, photo, or operations: {}, or {}; got '{}'{}",
       fmt::join(operation_names(&TransformOperation::keeps_size), ", "),
       fmt::join(operation_names(&TransformOperation::resizes), ", "), text,
       did_you_mean(text.substr(0, text.find(' ')), names));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  const std::size_t end = text.find_last_not_of(blanks);
  return text.substr(begin, end == std::string_view::npos ? 0 : end + 1 - begin);
}

TransformOperation description_of(const detail::OwnOperationRow& row) {
  return {row.operation.name, row.argument_names, row.operation.summary, true, false};
}

// Whether the numbers match the operation of the user.
bool add_own(const AugmentOperation& operation, Words words, ParsedTransform& to) {
  const auto n = numbers_of(words, {2 * static_cast<std::size_t>(operation.arguments)});
  if (!n) return false;
  const auto bounds = [&](std::size_t i) { return i < n->size() ? Bounds{(*n)[i], (*n)[i + 1]} : Bounds{}; };
  to.steps.push_back(random_operation(operation.name, bounds(0), bounds(2)));
  return true;
}

void add_operation(std::string_view part, ParsedTransform& to) {
  const std::vector<std::string_view> words = split(part, " \t\n");
  const std::string_view name = words.empty() ? std::string_view() : words[0];
  const auto row = std::ranges::find(operations, name, &TransformOperation::name);
  const detail::OwnOperationRow* const own = detail::find_own_operation(name);
  if (row == std::end(operations) && !own) fail_unknown(trimmed(part));
  const TransformOperation operation = own ? description_of(*own) : TransformOperation(*row);
  const Words arguments = Words(words).subspan(1);
  if (!(own ? add_own(own->operation, arguments, to) : row->add(arguments, to)))
    fail("[augment] expected '{}{}{}', got '{}'", operation.name, operation.arguments.empty() ? "" : " ",
         operation.arguments, trimmed(part));
  if (!operation.resizes && to.keeps_size.empty()) to.keeps_size = operation.name;
  if (!operation.keeps_size && to.resizes.empty()) to.resizes = operation.name;
}

// Operations that do nothing are not in the text of a transform: their numbers become the defaults, so that
// the text gives the same transform.
void leave_out_unused(PhotoRecipe& recipe) {
  const PhotoRecipe defaults;
  if (recipe.fit != PhotoFit::crop) {
    recipe.crop_scale = defaults.crop_scale;
    recipe.crop_ratio = defaults.crop_ratio;
  }
  if (recipe.fit != PhotoFit::center) recipe.shorter_side = defaults.shorter_side;
  if (recipe.fit != PhotoFit::letterbox) recipe.padding = defaults.padding;
  if (recipe.perspective.empty()) recipe.perspective = {};
  if (recipe.rand_augment.count == 0) recipe.rand_augment = {};
  if (recipe.erase.probability == 0) recipe.erase = {};
}

}  // namespace

Transform::Transform(const PhotoRecipe& recipe) : resizes_(true), photo_(recipe) {
  check_photo_recipe(recipe);
  leave_out_unused(photo_);
}

Transform Transform::parse(std::string_view text, int size) {
  const std::string_view all = trimmed(text);
  if (all == "none") return {};
  if (all == "digits") return digits_recipe();
  if (all == "photo") return training_transform(size);
  const std::vector<std::string_view> parts = split(all, ",");
  if (parts.empty()) fail_unknown(all);
  ParsedTransform parsed;
  parsed.photo.height = parsed.photo.width = size;
  for (const std::string_view part : parts) {
    add_operation(part, parsed);
    check(parsed.keeps_size.empty() || parsed.resizes.empty(),
          "[augment] expected operations for images of one size ({}) or operations that resize ({}), got "
          "both: {} and {}",
          fmt::join(operation_names(&TransformOperation::keeps_size), ", "),
          fmt::join(operation_names(&TransformOperation::resizes), ", "), parsed.keeps_size, parsed.resizes);
  }
  if (!parsed.keeps_size.empty()) return compose(parsed.steps);
  Transform transform(parsed.photo);
  if (parsed.resizes.empty()) transform.pixels_ = compose(parsed.steps);
  return transform;
}

std::string Transform::to_string() const {
  return resizes_ && pixels_.empty() ? tandem::to_string(photo_) : tandem::to_string(pixels_);
}

Transform Transform::for_photos(int size) const {
  PhotoRecipe recipe = photo();
  recipe.height = recipe.width = size;
  return recipe;
}

const Recipe& Transform::pixels() const {
  expect(!resizes_);
  return pixels_;
}

const PhotoRecipe& Transform::photo() const {
  expect(resizes_);
  return photo_;
}

Transform training_transform(int size) {
  return training_photo_recipe(size);
}

Transform evaluation_transform(int size, PhotoFit fit) {
  return evaluation_photo_recipe(size, fit);
}

std::vector<TransformOperation> transform_operations() {
  std::vector<TransformOperation> all(std::begin(operations), std::end(operations));
  for (const detail::OwnOperationRow& row : detail::own_operations()) all.push_back(description_of(row));
  return all;
}

std::string transform_help() {
  std::string text;
  for (const TransformOperation& operation : transform_operations())
    text += fmt::format("{}{}{}: {}\n", operation.name, operation.arguments.empty() ? "" : " ",
                        operation.arguments, operation.help);
  return text;
}

}  // namespace tandem
