#include "tandem/augment/recipe.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

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

Recipe compose(std::span<const AugmentStep> steps) {
  check(steps.size() <= max_augment_steps, "[augment] expected at most {} operations, got {}",
        max_augment_steps, steps.size());
  Recipe recipe;
  for (const AugmentStep& step : steps) {
    check_step(step);
    recipe.steps[recipe.count++] = step;
  }
  return recipe;
}

Recipe compose(std::initializer_list<AugmentStep> steps) {
  return compose(std::span(steps.begin(), steps.size()));
}

Recipe digits_recipe() {
  return compose({random_rotate({-12, 12}), random_shift({-2, 2}, {-2, 2}), random_skew({-0.1, 0.1})});
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
