// Transforms for photographs: how a photograph of any size becomes an image of the network's input size, and
// which random changes are applied. A recipe is a plain value, so that it can be copied into shared memory
// and passed to kernels.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/augment/recipe.h"
#include "tandem/image/resize.h"

namespace tandem {

/// How a photograph is fitted to the output size.
enum class PhotoFit : std::uint8_t {
  crop,      ///< a random box, resized (torchvision's RandomResizedCrop)
  resize,    ///< the whole photograph, resized without keeping its aspect ratio
  center,    ///< the shorter side resized to PhotoRecipe::shorter_side, then a center crop
  letterbox  ///< the whole photograph with its aspect ratio kept, centered on gray (Pillow's ImageOps.pad)
};

/// torchvision's ColorJitter, in random order: factors from 1 − x to 1 + x, at least 0; the hue is rotated by
/// up to ±hue of the circle.
struct PhotoJitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;

  constexpr bool empty() const { return brightness == 0 && contrast == 0 && saturation == 0 && hue == 0; }
  friend bool operator==(const PhotoJitter&, const PhotoJitter&) = default;
};

/// torchvision's RandomErasing: with the given probability, a box is filled with one color. The default color
/// is the ImageNet mean, which normalization maps to about 0.
struct PhotoErase {
  double probability = 0;
  Bounds scale = {0.02, 0.33};  ///< fraction of the area
  Bounds ratio = {0.3, 3.3};    ///< height by width
  std::uint8_t color[3] = {124, 116, 104};

  friend bool operator==(const PhotoErase&, const PhotoErase&) = default;
};

/// torchvision's RandomPerspective: with the given probability, every corner moves inwards by up to
/// `distortion` of half the side.
struct PhotoPerspective {
  double distortion = 0;
  double probability = 0.5;

  constexpr bool empty() const { return distortion == 0 || probability == 0; }
  friend bool operator==(const PhotoPerspective&, const PhotoPerspective&) = default;
};

/// Limits of RandAugment.
inline constexpr int max_rand_augment = 4;
inline constexpr int max_magnitude = 30;

/// torchvision's RandAugment: `count` random operations out of 14, each at `magnitude` of 0 … 30.
struct RandAugment {
  int count = 0;
  int magnitude = 9;

  friend bool operator==(const RandAugment&, const RandAugment&) = default;
};

/// A transform for photographs. The operations are applied in the order of the members.
struct PhotoRecipe {
  int height = 224;  ///< of the result
  int width = 224;
  ResizeFilter filter = ResizeFilter::bilinear;
  PhotoFit fit = PhotoFit::resize;
  Bounds crop_scale = {0.08, 1};           ///< fraction of the area
  Bounds crop_ratio = {3.0 / 4, 4.0 / 3};  ///< width by height
  int shorter_side = 256;                  ///< for PhotoFit::center
  int padding = 0;                         ///< for PhotoFit::letterbox: the level of the gray
  double flip = 0;                         ///< probability of a horizontal flip
  double vertical_flip = 0;                ///< probability
  double rotation = 0;                     ///< degrees, to both sides (torchvision's RandomRotation)
  PhotoPerspective perspective = {};
  PhotoJitter jitter = {};
  RandAugment rand_augment = {};
  bool trivial_augment =
      false;  ///< torchvision's TrivialAugmentWide: one random operation of random strength
  PhotoErase erase = {};

  friend bool operator==(const PhotoRecipe&, const PhotoRecipe&) = default;
};

/// The usual training transform: random_resized_crop(size) and horizontal_flip(0.5).
PhotoRecipe training_photo_recipe(int size = 224);
/// The usual evaluation transform to size × size, without random operations. With PhotoFit::center the
/// shorter side is resized to 8/7 of size (256 for 224).
PhotoRecipe evaluation_photo_recipe(int size = 224, PhotoFit fit = PhotoFit::resize);

/// Throws Error for sizes, bounds and probabilities out of range.
void check_photo_recipe(const PhotoRecipe& recipe);

/// The text that Transform::parse() (transform.h) turns into this recipe, given its size.
std::string to_string(const PhotoRecipe& recipe);

}  // namespace tandem
