// What is done to photographs: how a photograph of any size becomes an image of the network's size, and what
// is changed at random on the way. A plain value, so that it travels into shared memory and into kernels as
// it is; photo_draw.h turns it into the arguments of one image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/augment/recipe.h"
#include "tandem/image/resize.h"

namespace tandem {

enum class PhotoFit : std::uint8_t {
  crop,    // a random box of the photograph (torchvision's RandomResizedCrop), resized
  resize,  // all of it, resized whatever its proportions
  centre   // its shorter side resized to PhotoRecipe::shorter_side, then the middle
};

// torchvision's ColorJitter: factors from 1 − x to 1 + x, never below 0; the hue turns by up to ±hue of the
// circle. In a random order.
struct PhotoJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;

  constexpr bool empty() const { return brightness == 0 && contrast == 0 && saturation == 0 && hue == 0; }
  friend bool operator==(const PhotoJitter&, const PhotoJitter&) = default;
};

// torchvision's RandomErasing: with some probability a box (share of the area, height by width) gets one
// colour. By default it is what normalisation takes to about 0.
struct PhotoErase {
  double probability = 0;
  Bounds scale = {0.02, 0.33}, ratio = {0.3, 3.3};
  std::uint8_t colour[3] = {124, 116, 104};

  friend bool operator==(const PhotoErase&, const PhotoErase&) = default;
};

inline constexpr int most_rand_augment = 4, most_magnitude = 30;

// torchvision's RandAugment: `count` operations out of 14, each at `magnitude` of 0 … 30.
struct RandAugment {
  int count = 0, magnitude = 9;

  friend bool operator==(const RandAugment&, const RandAugment&) = default;
};

struct PhotoRecipe {
  int height = 224, width = 224;  // of the result
  ResizeFilter filter = ResizeFilter::bilinear;
  PhotoFit fit = PhotoFit::resize;
  Bounds crop_scale = {0.08, 1};           // share of the area
  Bounds crop_ratio = {3.0 / 4, 4.0 / 3};  // width by height
  int shorter_side = 256;                  // of PhotoFit::centre
  double flip = 0;                         // probability of left for right
  PhotoJitter jitter = {};
  RandAugment rand_augment = {};
  PhotoErase erase = {};

  friend bool operator==(const PhotoRecipe&, const PhotoRecipe&) = default;
};

// random_resized_crop(size) and horizontal_flip(0.5).
PhotoRecipe training_photos(int size = 224);
// Resized to size × size; with `eval_crop` the shorter side to 8/7 of it (256 for 224), then the middle.
PhotoRecipe evaluation_photos(int size = 224, bool eval_crop = false);

// Error for sizes, bounds and probabilities out of range.
void check_photo_recipe(const PhotoRecipe& recipe);

// "photo": training_photos(size), "none": evaluation_photos(size), or a list of operations: "crop 0.08 1 0.75
// 1.333, flip 0.5, jitter 0.4 0.4 0.4 0.1, erase 0.25, randaugment 2 9". crop has the scale's and the ratio's
// bounds, or none for the usual ones; resize and centre N stand in its place; erase has the probability, then
// perhaps bounds as crop; bicubic resizes so.
PhotoRecipe parse_photo_recipe(std::string_view text, int size = 224);
// Whether a recipe is one for photographs, by its first word; "none" is either.
bool is_photo_recipe(std::string_view recipe);
// What parse_photo_recipe() reads.
std::string to_string(const PhotoRecipe& recipe);

}  // namespace tandem
