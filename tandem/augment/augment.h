// Augmentation: a recipe's operations on 8-bit images, one at a time (a loader's worker) or a whole batch on
// the device where it is. Both come to the same bits (but for cubic rotation, which is computed in floats and
// may differ by a level). The definitions the tests hold them to are in reference.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/augment/draw.h"
#include "tandem/device/stream.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Memory of a worker, kept from image to image.
struct AugmentScratch {
  std::vector<DrawnStep> drawn;      // the arguments of the steps
  std::vector<std::uint8_t> image;   // between two passes
  std::vector<std::uint8_t> moved;   // a rotation's source after the moves before it
  std::vector<std::uint16_t> pairs;  // levels above each other
  std::vector<RowMove> moves;        // after a rotation
  std::vector<std::uint32_t> reads;  // where pixels are read
  std::vector<std::uint32_t> bits;   // for noise
  std::vector<float> coefficients;   // of a cubic spline
};

// Begins to bring an image to the caches: in a shuffled order none is there.
void fetch_image(const std::uint8_t* image, const ImageSize& size);

// `out` may not overlap `in`. key.operation is ignored: operation i of the recipe draws with i.
void augment_image(const Recipe& recipe, const ImageSize& size, const DrawKey& key, const std::uint8_t* in,
                   std::uint8_t* out, AugmentScratch& scratch);

// The same with arguments already drawn; `recipe` says what they are arguments of.
void augment_image(const Recipe& recipe, std::span<const DrawnStep> drawn, const ImageSize& size,
                   const DrawKey& key, const std::uint8_t* in, std::uint8_t* out, AugmentScratch& scratch);

// out[i] = image samples[i] of `images`, augmented with the draws of (seed, epoch, samples[i]). images and
// out are u8 (count, height, width, channels), samples i32, all on one device; out may not overlap images. A
// sample that is not there is an Error on the CPU; on CUDA, where looking would mean waiting for the device,
// image 0 stands for it.
void augment_batch(const Recipe& recipe, std::uint64_t seed, std::int64_t epoch, const Tensor& images,
                   const Tensor& samples, const Tensor& out);

struct AugmentBatch {
  Recipe recipe;
  ImageSize size;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::uint8_t* images = nullptr;
  std::int32_t image_count = 0;
  const std::int32_t* samples = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
};

template <Backend B>
void augment_kernel(const AugmentBatch& batch, StreamView stream);

}  // namespace tandem
