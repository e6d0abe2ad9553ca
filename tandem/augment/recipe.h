// Augmentation recipes for small images: a list of operations with bounds between which their arguments are
// sampled. A recipe is a plain value, so that it can be copied into shared memory and passed to kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// The operations for small images; reference.h defines them, the user defines custom ones (own_operation.h).
enum class AugmentKind : std::uint8_t {
  rotate,
  shift,
  skew,
  noise,
  zoom,
  crop,
  flip,
  blur,
  reflected_shift,
  custom
};

/// How a rotation or a zoom reads between pixels. The values are SciPy's spline orders.
enum class Interpolation : std::uint8_t { nearest = 0, linear = 1, cubic = 3 };

/// The range of a random argument. Equal bounds fix the argument.
struct Bounds {
  double min = 0;
  double max = 0;

  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// The largest kernel of a blur, per side, and its largest weight.
inline constexpr int max_blur_side = 5;
inline constexpr int max_blur_weight = 1000;

/// A small kernel of whole numbers: weights[i · width + j] is that of row i, column j.
struct BlurKernel {
  std::uint8_t height = 0;
  std::uint8_t width = 0;
  bool gradient = false;  ///< the magnitude sqrt(Gx² + Gy²), Gy with the transposed kernel, as for edges
  std::int16_t weights[max_blur_side * max_blur_side] = {};

  friend bool operator==(const BlurKernel&, const BlurKernel&) = default;
};

/// One operation of a recipe.
struct AugmentStep {
  AugmentKind kind = AugmentKind::shift;
  Interpolation interpolation = Interpolation::linear;  ///< of a rotation or a zoom
  bool alternating = false;                             ///< flip: in every second epoch (alternating_flip())
  std::int32_t operation = -1;                          ///< custom: which one, by its order of registration
  BlurKernel kernel = {};                               ///< of a blur
  /// rotate: degrees; shifts: dx, whole pixels to the left; skew: tilt; noise: fraction of full scale; zoom:
  /// factor; crop: fraction of the area; flip and blur: the probability, twice; custom: the first argument
  Bounds first = {};
  Bounds second = {};  ///< shifts: dy, whole pixels upwards; custom: the second argument

  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

/// The maximum number of operations of a recipe.
inline constexpr int max_augment_steps = 16;

/// Up to max_augment_steps operations, applied in order.
struct Recipe {
  int count = 0;
  AugmentStep steps[max_augment_steps];

  bool empty() const { return count == 0; }
  /// Whether it has a custom operation: those run on the CPU only.
  bool cpu_only() const {
    for (const AugmentStep& step : *this)
      if (step.kind == AugmentKind::custom) return true;
    return false;
  }
  const AugmentStep* begin() const { return steps; }
  const AugmentStep* end() const { return steps + count; }
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Operations with random arguments; compose() checks the bounds.
AugmentStep random_rotate(Bounds degrees, Interpolation interpolation = Interpolation::linear);
AugmentStep random_shift(Bounds dx, Bounds dy);
/// What comes in mirrors the image at its border, without repeating the border itself.
AugmentStep random_reflected_shift(Bounds dx, Bounds dy);
AugmentStep random_skew(Bounds tilt);
AugmentStep random_noise(Bounds amount);
AugmentStep random_zoom(Bounds factor, Interpolation interpolation = Interpolation::linear);
AugmentStep random_crop(Bounds fraction);
AugmentStep random_flip(double probability);
/// Flips half of the images, at random, in the first epoch, the others in the second, and so on: two epochs
/// in a row show each image both ways (Jordan 2024).
AugmentStep alternating_flip();
AugmentStep random_blur(double probability, const BlurKernel& kernel);

/// The kernel with a name of `tandem filter` ("ring"), or of numbers: "1 2 1; 2 4 2; 1 2 1", "gradient 1 -1".
/// Throws Error for other texts, and for a kernel that compose() refuses.
BlurKernel blur_kernel(std::string_view text);
/// The text that blur_kernel() turns into this kernel.
std::string to_string(const BlurKernel& kernel);

/// A recipe of these operations. Throws Error for more than max_augment_steps, and for bounds that are not
/// finite, not ascending or out of range: degrees within ±36000, shifts whole and within ±65536, tilt within
/// ±1000, noise and probabilities from 0 to 1, zoom from 0.25 to 100, crop from 1e-6 to 1; kernels of 1×1 to
/// 5×5 whole numbers within ±1000, one of them above 0.
Recipe compose(std::initializer_list<AugmentStep> steps);
Recipe compose(std::span<const AugmentStep> steps);

/// Suited to handwritten digits of 28×28 pixels; docs/augmentation.md describes the experiment.
Recipe digits_recipe();

/// The text that Transform::parse() (transform.h) turns into this recipe; "none" for an empty one. With crops
/// and flips only, the result of parse() has this recipe for images of one size (Transform::for_one_size()).
std::string to_string(const Recipe& recipe);

}  // namespace tandem
