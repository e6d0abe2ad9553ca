// Augmentation recipes for small images: a list of operations with bounds between which their arguments are
// sampled. A recipe is a plain value, so that it can be copied into shared memory and passed to kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tandem {

/// The operations for small images; reference.h defines them.
enum class AugmentKind : std::uint8_t { rotate, shift, skew, noise };

/// How a rotation reads between pixels. The values are SciPy's spline orders.
enum class Interpolation : std::uint8_t { nearest = 0, linear = 1, cubic = 3 };

/// The range of a random argument. Equal bounds fix the argument.
struct Bounds {
  double min = 0;
  double max = 0;

  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// One operation of a recipe.
struct AugmentStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;  ///< of a rotation
  /// rotate: degrees; shift: dx, whole pixels to the left; skew: tilt; noise: fraction of full scale
  Bounds first = {};
  Bounds second = {};  ///< shift: dy, whole pixels upwards

  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

/// The maximum number of operations of a recipe.
inline constexpr int max_augment_steps = 16;

/// Up to max_augment_steps operations, applied in order.
struct Recipe {
  int count = 0;
  AugmentStep steps[max_augment_steps];

  bool empty() const { return count == 0; }
  const AugmentStep* begin() const { return steps; }
  const AugmentStep* end() const { return steps + count; }
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Operations with random arguments; compose() checks the bounds.
AugmentStep random_rotate(Bounds degrees, Interpolation interpolation = Interpolation::linear);
AugmentStep random_shift(Bounds dx, Bounds dy);
AugmentStep random_skew(Bounds tilt);
AugmentStep random_noise(Bounds amount);

/// A recipe of these operations. Throws Error for more than max_augment_steps, and for bounds that are not
/// finite, not ascending or out of range: degrees within ±36000, shifts whole and within ±65536, tilt within
/// ±1000, noise from 0 to 1.
Recipe compose(std::initializer_list<AugmentStep> steps);
Recipe compose(std::span<const AugmentStep> steps);

/// Suited to handwritten digits of 28×28 pixels; docs/augmentation.md describes the experiment.
Recipe digits_recipe();

/// The text that Transform::parse() (transform.h) turns into this recipe; "none" for an empty one.
std::string to_string(const Recipe& recipe);

}  // namespace tandem
