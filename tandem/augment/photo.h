// Transforms photographs to the input size of a network: crop, resize as PIL does, flip, rotation,
// perspective, color jitter, RandAugment, TrivialAugment, erasing. 8-bit RGB in, 8-bit RGB out (normalization
// is part of the network's input). One at a time (in a loader worker) or a batch of decoded photographs on
// their device; both give the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/augment/photo_arguments.h"
#include "tandem/image/image.h"
#include "tandem/image/resize_kernel.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Buffers reused from image to image; one instance per thread.
struct PhotoScratch {
  detail::ResizeScratch resize;
  std::vector<std::uint8_t> resampled, copy;
  std::vector<std::int32_t> weights;
  Image box;  // the last decoded box
};

// Transforms an RGB photograph with the arguments that the key gives; writes recipe.height × recipe.width × 3
// bytes.
void transform_photo(const PhotoRecipe& recipe, const RandomKey& key, const ImageView& photo,
                     std::uint8_t* out, PhotoScratch& scratch);

// The same with arguments that were sampled for the size of this photograph.
void transform_photo(const PhotoRecipe& recipe, const detail::PhotoArguments& arguments,
                     const ImageView& photo, std::uint8_t* out, PhotoScratch& scratch);

// The same if only arguments.box of the photograph was decoded, at any scale.
void transform_photo_box(const PhotoRecipe& recipe, const detail::PhotoArguments& arguments,
                         const ImageView& box, std::uint8_t* out, PhotoScratch& scratch);

// A photograph in a buffer of many: contiguous RGB at a byte offset. A height of 0 marks a missing
// photograph, whose image is black.
struct PhotoLocation {
  std::int64_t offset = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// out[i] = photograph samples[i], transformed with the arguments of (seed, epoch, samples[i]). pixels is u8;
// locations is i64 (count, 3), the fields of PhotoLocation; samples is i32; out is u8 (count, height, width,
// 3); all on one device. A sample index out of range is an Error on the CPU. On CUDA, where checking would
// need a synchronization, its image is black. The locations are not checked.
void transform_photo_batch(const PhotoRecipe& recipe, std::uint64_t seed, std::int64_t epoch,
                           const Tensor& pixels, const Tensor& locations, const Tensor& samples, Tensor out);

}  // namespace tandem
