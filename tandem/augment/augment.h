// Augmentation: applies a recipe to 8-bit images, one at a time (in a loader worker) or a whole batch on its
// device. Both give the same bits (except for cubic interpolation, which is computed in floats and may differ
// by one level). The tests compare them with the definitions in reference.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/augment/arguments.h"
#include "tandem/augment/recipe.h"
#include "tandem/core/philox.h"
#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Buffers reused from image to image; one instance per thread.
struct AugmentScratch {
  std::vector<detail::SampledStep> steps;  // the arguments of the steps
  std::vector<std::uint8_t> image;         // between two passes
  std::vector<std::uint8_t> moved;         // what a pass resamples, after the moves before it
  std::vector<std::uint8_t> blurred;       // before the moves after a blur
  std::vector<std::int32_t> sums;          // and padded rows of a blur
  std::vector<std::uint16_t> pairs;        // pixels packed with the one below
  std::vector<detail::RowMove> moves;      // after resampling
  std::vector<std::uint32_t> gather;       // source offsets, weights and pixels of an interpolation
  std::vector<std::uint32_t> bits;         // random bits for noise
  std::vector<float> coefficients;         // of a cubic spline
};

// Prefetches an image into the CPU caches: in shuffled order the hardware prefetcher cannot.
void prefetch_image(const std::uint8_t* image, const ImageSize& size);

// Augments one image with the arguments that the key gives. `out` may not overlap `in`. key.operation is
// ignored: operation i of the recipe uses i.
void augment_image(const Recipe& recipe, const ImageSize& size, const RandomKey& key, const std::uint8_t* in,
                   std::uint8_t* out, AugmentScratch& scratch);

// The same with arguments that are already sampled, one per step of the recipe.
void augment_image(const Recipe& recipe, std::span<const detail::SampledStep> steps, const ImageSize& size,
                   const RandomKey& key, const std::uint8_t* in, std::uint8_t* out, AugmentScratch& scratch);

// out[i] = image samples[i] of `images`, augmented with the arguments of (seed, epoch, samples[i]). images
// and out are u8 (count, height, width, channels), samples is i32 (count), all on one device; out may not
// overlap images. A sample index out of range is an Error on the CPU. On CUDA, where checking would need a
// synchronization, image 0 is used. With `keys`, like samples, the arguments are those of (seed, epoch,
// keys[i]).
void augment_batch(const Recipe& recipe, std::uint64_t seed, std::int64_t epoch, const Tensor& images,
                   const Tensor& samples, Tensor out, const Tensor& keys = {});

}  // namespace tandem
