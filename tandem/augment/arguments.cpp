#include "tandem/augment/arguments.h"

#include <fmt/format.h>

#include <cmath>

namespace tandem::detail {
namespace {

// 0 for values that would be printed as "-0.0".
double without_negative_zero(double value, double min_magnitude) {
  return std::abs(value) < min_magnitude ? 0 : value;
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
  }
  return {};
}

}  // namespace tandem::detail
