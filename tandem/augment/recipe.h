// What is done to training images: a list of operations with bounds between which their arguments are drawn.
// The list is a plain value, so that it travels into shared memory and into kernels as it is; draw.h turns it
// into the arguments of one image.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tandem {

enum class AugmentKind : std::uint8_t { rotate, shift, skew, noise };

// The values are SciPy's spline orders.
enum class Interpolation : std::uint8_t { nearest = 0, linear = 1, cubic = 3 };

struct Bounds {
  double least = 0, most = 0;

  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// One operation. Bounds that are equal fix the argument.
struct AugmentStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;  // of a rotation
  // rotate: degrees; shift: dx, whole pixels to the left; skew: tilt; noise: share of full scale
  Bounds first = {};
  Bounds second = {};  // shift: dy, whole pixels upwards

  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

inline constexpr int most_augment_steps = 16;

struct Recipe {
  int count = 0;
  AugmentStep steps[most_augment_steps];

  bool empty() const { return count == 0; }
  const AugmentStep* begin() const { return steps; }
  const AugmentStep* end() const { return steps + count; }
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

AugmentStep random_rotate(Bounds degrees, Interpolation interpolation = Interpolation::linear);
AugmentStep random_shift(Bounds dx, Bounds dy);
AugmentStep random_skew(Bounds tilt);
AugmentStep random_noise(Bounds amount);

// Operations one after the other. Error for bounds that are no numbers, in the wrong order or out of range:
// degrees within ±36000, shifts whole and within ±65536, tilt within ±1000, noise from 0 to 1.
Recipe compose(std::initializer_list<AugmentStep> steps);

// What suits handwritten digits of 28×28 pixels; docs/augmentation.md has the experiment.
Recipe digits_recipe();

// "none", "digits", or operations with their bounds: "rotate -12 12, shift -2 2 -1 1, skew -0.1 0.1, noise
// 0 0.1"; a shift with two bounds uses them both ways, a rotation may end with nearest or cubic.
Recipe parse_recipe(std::string_view text);
// What parse_recipe() reads, "none" for an empty one.
std::string to_string(const Recipe& recipe);

}  // namespace tandem
