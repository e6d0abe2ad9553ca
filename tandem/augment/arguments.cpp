#include "tandem/augment/arguments.h"

#include <fmt/format.h>

#include <cmath>

#include "tandem/augment/own_operation_table.h"

namespace tandem::detail {
namespace {

// 0 for values that would be printed as "-0.0".
double without_negative_zero(double value, double min_magnitude) {
  return std::abs(value) < min_magnitude ? 0 : value;
}

std::string custom_text(const SampledStep& step) {
  const AugmentOperation& operation = own_operations()[static_cast<std::size_t>(step.operation)].operation;
  std::string text = operation.name;
  for (int i = 0; i < operation.arguments; ++i) text += fmt::format(" {:.3g}", step.arguments[i]);
  return text;
}

}  // namespace

std::string to_string(const SampledStep& step) {
  switch (step.kind) {
    case AugmentKind::rotate:
      return fmt::format("rotate {:.1f}", without_negative_zero(step.value, 0.05));
    case AugmentKind::shift:
      return fmt::format("shift {} {}", step.dx, step.dy);
    case AugmentKind::skew:
      return fmt::format("skew {:.2f}", without_negative_zero(step.tilt, 0.005));
    case AugmentKind::noise:
      return fmt::format("noise {:.2f}", step.noise / (255.0 * 128));
    case AugmentKind::zoom:
      return fmt::format("zoom {:.2f}", step.value);
    case AugmentKind::crop:
      return fmt::format("crop {:.2f}", step.value);
    case AugmentKind::flip:
      return fmt::format("flip {:d}", step.applied);
    case AugmentKind::blur:
      return fmt::format("blur {:d}", step.applied);
    case AugmentKind::reflected_shift:
      return fmt::format("shift {} {} reflect", step.dx, step.dy);
    case AugmentKind::custom:
      return custom_text(step);
  }
  return {};
}

}  // namespace tandem::detail
