// Mixup and CutMix: every image of a batch is mixed with its neighbor, as torchvision's MixUp and CutMix do
// (image i with image i − 1, the first with the last). The arguments are the same for the whole batch and a
// function of (seed, epoch, step); the loss weights both labels accordingly.
#pragma once

#include <cstdint>

#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// The α of Beta(α, α), from which the mixing weight is sampled; 0 is off. If both are on, each batch uses
/// one of them with equal probability.
struct MixRecipe {
  double mixup = 0;
  double cutmix = 0;

  bool empty() const { return mixup == 0 && cutmix == 0; }
  friend bool operator==(const MixRecipe&, const MixRecipe&) = default;
};

/// How the images of one batch are mixed.
struct MixArguments {
  static constexpr std::int32_t full_weight = 1 << 16;

  std::int32_t pixel_weight = full_weight;  ///< mixup: the weight of the image itself, in 1/65536
  PixelBox box;                             ///< CutMix: the pixels taken from the neighbor; empty if none
  double label_weight = 1;                  ///< of the image's own label; the neighbor's label has the rest
};

/// Throws Error for an α other than 0 or 0.01 … 1000.
void check_mix_recipe(const MixRecipe& recipe);

/// Samples the arguments of one step for images of height × width. Throws Error as check_mix_recipe() does.
MixArguments sample_mix(const MixRecipe& recipe, int height, int width, std::uint64_t seed,
                        std::int64_t epoch, std::int64_t step);

/// out[i] = images[samples[i]] mixed with images[samples[i − 1]]. images and out are u8 (count, height,
/// width, channels) and may not overlap; samples is i32, one per image of `out`. Throws Error for other
/// shapes and dtypes, and on the CPU for a sample index out of range; on CUDA image 0 is used for it.
void mix_batch(const MixArguments& arguments, const Tensor& images, const Tensor& samples, Tensor out);

}  // namespace tandem
