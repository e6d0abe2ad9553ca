#include "tandem/augment/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tandem/augment/own_operation_table.h"
#include "tandem/augment/photo_filter.h"
#include "tandem/core/check.h"

namespace tandem {
namespace {

// One row per kind, in the order of AugmentKind.
struct KindRow {
  AugmentKind kind;
  std::string_view name;
  double min, max;          // of its bounds
  const char* description;  // of a valid bound
  bool whole = false;
};

constexpr KindRow kinds[] = {
    {AugmentKind::rotate, "rotate", -36000, 36000, "degrees from -36000 to 36000"},
    {AugmentKind::shift, "shift", -65536, 65536, "whole pixels from -65536 to 65536", true},
    {AugmentKind::skew, "skew", -1000, 1000, "a tilt from -1000 to 1000"},
    {AugmentKind::noise, "noise", 0, 1, "a fraction of full scale from 0 to 1"},
    {AugmentKind::zoom, "zoom", 0.25, 100, "a factor from 0.25 to 100"},
    {AugmentKind::crop, "crop", 1e-6, 1, "a fraction of the area from 1e-06 to 1"},
    {AugmentKind::flip, "flip", 0, 1, "a probability from 0 to 1"},
    {AugmentKind::blur, "blur", 0, 1, "a probability from 0 to 1"},
    {AugmentKind::reflected_shift, "shift", -65536, 65536, "whole pixels from -65536 to 65536", true},
    {AugmentKind::custom, "", -1e300, 1e300, "numbers"},
};

const AugmentOperation& own_operation(const AugmentStep& step) {
  check(step.operation >= 0 && step.operation < std::ssize(detail::own_operations()),
        "[augment] expected a registered operation, got number {} of {}", step.operation,
        detail::own_operations().size());
  return detail::own_operations()[static_cast<std::size_t>(step.operation)].operation;
}

// With the name of a custom operation.
KindRow row_of(const AugmentStep& step) {
  KindRow row = kinds[static_cast<std::size_t>(step.kind)];
  expect(row.kind == step.kind);
  if (step.kind == AugmentKind::custom) row.name = own_operation(step).name;
  return row;
}

bool is_shift(AugmentKind kind) {
  return kind == AugmentKind::shift || kind == AugmentKind::reflected_shift;
}

bool has_probability(AugmentKind kind) {
  return kind == AugmentKind::flip || kind == AugmentKind::blur;
}

void check_bounds(const KindRow& row, const Bounds& bounds) {
  const bool finite = std::isfinite(bounds.min) && std::isfinite(bounds.max);
  const bool integral =
      !row.whole || (bounds.min == std::floor(bounds.min) && bounds.max == std::floor(bounds.max));
  const bool valid = finite && integral && bounds.min >= row.min && bounds.max <= row.max;
  if (has_probability(row.kind))
    check(valid && bounds.min == bounds.max, "[augment] {}: expected {}, got {}", row.name, row.description,
          bounds.min);
  check(valid, "[augment] {}: expected {}, got {} to {}", row.name, row.description, bounds.min, bounds.max);
  check(bounds.min <= bounds.max, "[augment] {}: expected the lower bound first, got {} to {}", row.name,
        bounds.min, bounds.max);
}

void check_kernel(const BlurKernel& kernel) {
  check(kernel.height >= 1 && kernel.height <= max_blur_side && kernel.width >= 1 &&
            kernel.width <= max_blur_side,
        "[augment] blur: expected a kernel of 1x1 to {0}x{0}, got {1}x{2}", max_blur_side, kernel.height,
        kernel.width);
  const std::span weights(kernel.weights, static_cast<std::size_t>(kernel.height * kernel.width));
  for (const int weight : weights)
    check(weight >= -max_blur_weight && weight <= max_blur_weight,
          "[augment] blur: expected whole numbers from -{0} to {0} in the kernel, got {1}", max_blur_weight,
          weight);
  check(std::ranges::any_of(weights, [](int weight) { return weight > 0; }),
        "[augment] blur: expected a kernel with a number above 0");
}

void check_step(const AugmentStep& step) {
  const KindRow row = row_of(step);
  check_bounds(row, step.first);
  if (is_shift(step.kind) || step.kind == AugmentKind::custom) check_bounds(row, step.second);
  if (step.kind == AugmentKind::blur) check_kernel(step.kernel);
}

BlurKernel kernel_of(const PhotoFilter& filter) {
  const std::int64_t height = filter.kernel.size(0), width = filter.kernel.size(1);
  check(height <= max_blur_side && width <= max_blur_side,
        "[augment] blur: expected a kernel of 1x1 to {0}x{0}, got {1}x{2}", max_blur_side, height, width);
  BlurKernel kernel{.height = static_cast<std::uint8_t>(height),
                    .width = static_cast<std::uint8_t>(width),
                    .gradient = filter.gradient};
  std::int16_t* to = kernel.weights;
  for (const float weight : filter.kernel.to_vector<float>()) {
    check(weight == std::floor(weight) && std::abs(weight) <= max_blur_weight,
          "[augment] blur: expected whole numbers from -{0} to {0} in the kernel, got {1}", max_blur_weight,
          weight);
    *to++ = static_cast<std::int16_t>(weight);
  }
  check_kernel(kernel);
  return kernel;
}

}  // namespace

AugmentStep random_rotate(Bounds degrees, Interpolation interpolation) {
  return {.kind = AugmentKind::rotate, .interpolation = interpolation, .first = degrees};
}
AugmentStep random_shift(Bounds dx, Bounds dy) {
  return {.kind = AugmentKind::shift, .first = dx, .second = dy};
}
AugmentStep random_reflected_shift(Bounds dx, Bounds dy) {
  return {.kind = AugmentKind::reflected_shift, .first = dx, .second = dy};
}
AugmentStep random_skew(Bounds tilt) {
  return {.kind = AugmentKind::skew, .first = tilt};
}
AugmentStep random_noise(Bounds amount) {
  return {.kind = AugmentKind::noise, .first = amount};
}
AugmentStep random_zoom(Bounds factor, Interpolation interpolation) {
  return {.kind = AugmentKind::zoom, .interpolation = interpolation, .first = factor};
}
AugmentStep random_crop(Bounds fraction) {
  return {.kind = AugmentKind::crop, .first = fraction};
}
AugmentStep random_flip(double probability) {
  return {.kind = AugmentKind::flip, .first = {probability, probability}};
}
AugmentStep alternating_flip() {
  return {.kind = AugmentKind::flip, .alternating = true, .first = {0.5, 0.5}};
}
AugmentStep random_blur(double probability, const BlurKernel& kernel) {
  return {.kind = AugmentKind::blur, .kernel = kernel, .first = {probability, probability}};
}

BlurKernel blur_kernel(std::string_view text) {
  if (const PhotoFilter* const filter = builtin_filters().find(text)) return kernel_of(*filter);
  constexpr std::string_view gradient = "gradient ";
  if (text.starts_with(gradient)) return kernel_of(parse_filter(text.substr(gradient.size()), true));
  check(text.find_first_of("0123456789") != std::string_view::npos, "[augment] blur: {}",
        builtin_filters().unknown(text));
  return kernel_of(parse_filter(text, false));
}

std::string to_string(const BlurKernel& kernel) {
  for (const PhotoFilter& filter : builtin_filters().rows())
    if (kernel_of(filter) == kernel) return filter.name;
  std::string text = kernel.gradient ? "gradient " : "";
  for (int i = 0; i < kernel.height * kernel.width; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i % kernel.width == 0 ? "; " : " ", kernel.weights[i]);
  return text;
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
    const int arguments = step.kind == AugmentKind::custom ? own_operation(step).arguments : 1;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", row_of(step).name);
    if (step.alternating)
      text += " alternating";
    else if (arguments > 0)
      text += fmt::format(" {}", step.first.min);
    if (arguments > 0 && !has_probability(step.kind)) text += fmt::format(" {}", step.first.max);
    if (arguments > 1) text += fmt::format(" {} {}", step.second.min, step.second.max);
    if (is_shift(step.kind) && step.second != step.first)
      text += fmt::format(" {} {}", step.second.min, step.second.max);
    if (step.kind == AugmentKind::reflected_shift) text += " reflect";
    if (step.interpolation != Interpolation::linear)
      text += step.interpolation == Interpolation::cubic ? " cubic" : " nearest";
    if (step.kind == AugmentKind::blur) text += " " + to_string(step.kernel);
  }
  return text.empty() ? "none" : text;
}

}  // namespace tandem
