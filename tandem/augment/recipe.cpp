#include "tandem/augment/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr std::string_view kind_names[] = {"rotate", "shift", "skew", "noise"};

struct Range {
  double min, max;
  const char* description;
};

Range range_of(AugmentKind kind) {
  switch (kind) {
    case AugmentKind::rotate:
      return {-36000, 36000, "degrees from -36000 to 36000"};
    case AugmentKind::shift:
      return {-65536, 65536, "whole pixels from -65536 to 65536"};
    case AugmentKind::skew:
      return {-1000, 1000, "a tilt from -1000 to 1000"};
    case AugmentKind::noise:
      return {0, 1, "a fraction of full scale from 0 to 1"};
  }
  return {0, 0, ""};
}

std::string_view name_of(AugmentKind kind) {
  return kind_names[static_cast<int>(kind)];
}

void check_bounds(AugmentKind kind, const Bounds& bounds) {
  const Range range = range_of(kind);
  const bool finite = std::isfinite(bounds.min) && std::isfinite(bounds.max);
  const bool integral = kind != AugmentKind::shift ||
                        (bounds.min == std::floor(bounds.min) && bounds.max == std::floor(bounds.max));
  check(finite && integral && bounds.min >= range.min && bounds.max <= range.max,
        "[augment] {}: expected {}, got {} to {}", name_of(kind), range.description, bounds.min, bounds.max);
  check(bounds.min <= bounds.max, "[augment] {}: expected the lower bound first, got {} to {}", name_of(kind),
        bounds.min, bounds.max);
}

void check_step(const AugmentStep& step) {
  check_bounds(step.kind, step.first);
  if (step.kind == AugmentKind::shift) check_bounds(step.kind, step.second);
}

Recipe checked_recipe(const AugmentStep* steps, std::size_t count) {
  check(count <= max_augment_steps, "[augment] expected at most {} operations, got {}", max_augment_steps,
        count);
  Recipe recipe;
  for (; recipe.count < static_cast<int>(count); ++recipe.count) {
    check_step(steps[recipe.count]);
    recipe.steps[recipe.count] = steps[recipe.count];
  }
  return recipe;
}

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

AugmentStep parse_step(std::string_view text) {
  const std::vector<std::string_view> words = split(text, " \t\n");
  const auto fail_with_usage = [&] {
    fail(
        "[augment] expected operations such as 'rotate -12 12, shift -2 2, skew -0.1 0.1, noise 0 0.1', got "
        "'{}'",
        text);
  };
  AugmentStep step;
  bool known = false;
  for (std::size_t i = 0; i < std::size(kind_names) && !words.empty(); ++i) {
    if (words.front() != kind_names[i]) continue;
    step.kind = static_cast<AugmentKind>(i);
    known = true;
  }
  if (!known) fail_with_usage();
  std::vector<double> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool last_of_rotation = step.kind == AugmentKind::rotate && i + 1 == words.size();
    if (last_of_rotation && (word == "nearest" || word == "linear" || word == "cubic")) {
      step.interpolation = word == "nearest" ? Interpolation::nearest
                           : word == "cubic" ? Interpolation::cubic
                                             : Interpolation::linear;
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) fail_with_usage();
    numbers.push_back(number);
  }
  const bool two_pairs = step.kind == AugmentKind::shift && numbers.size() == 4;
  if (numbers.size() != 2 && !two_pairs) fail_with_usage();
  step.first = {numbers[0], numbers[1]};
  if (step.kind == AugmentKind::shift) step.second = two_pairs ? Bounds{numbers[2], numbers[3]} : step.first;
  return step;
}

}  // namespace

AugmentStep random_rotate(Bounds degrees, Interpolation interpolation) {
  return {.kind = AugmentKind::rotate, .interpolation = interpolation, .first = degrees};
}
AugmentStep random_shift(Bounds dx, Bounds dy) {
  return {.kind = AugmentKind::shift, .first = dx, .second = dy};
}
AugmentStep random_skew(Bounds tilt) {
  return {.kind = AugmentKind::skew, .first = tilt};
}
AugmentStep random_noise(Bounds amount) {
  return {.kind = AugmentKind::noise, .first = amount};
}

Recipe compose(std::initializer_list<AugmentStep> steps) {
  return checked_recipe(steps.begin(), steps.size());
}

Recipe digits_recipe() {
  return compose({random_rotate({-12, 12}), random_shift({-2, 2}, {-2, 2}), random_skew({-0.1, 0.1})});
}

Recipe parse_recipe(std::string_view text) {
  if (text == "none") return {};
  if (text == "digits") return digits_recipe();
  std::vector<AugmentStep> steps;
  for (const std::string_view part : split(text, ",")) steps.push_back(parse_step(part));
  check(!steps.empty(), "[augment] expected none, digits or operations with their bounds, got '{}'", text);
  return checked_recipe(steps.data(), steps.size());
}

std::string to_string(const Recipe& recipe) {
  std::string text;
  for (const AugmentStep& step : recipe) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", name_of(step.kind), step.first.min,
                        step.first.max);
    if (step.kind == AugmentKind::shift && step.second != step.first)
      text += fmt::format(" {} {}", step.second.min, step.second.max);
    if (step.kind == AugmentKind::rotate && step.interpolation != Interpolation::linear)
      text += step.interpolation == Interpolation::cubic ? " cubic" : " nearest";
  }
  return text.empty() ? "none" : text;
}

}  // namespace tandem
