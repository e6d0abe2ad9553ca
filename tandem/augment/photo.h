// Photographs for a network: crop, resize as PIL does, flip, colours, RandAugment, erasing; 8-bit RGB in,
// 8-bit RGB out (normalisation belongs to the network's input). One at a time (a loader's worker) or a batch
// of decoded photographs on the device where they are; both come to the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/augment/photo_draw.h"
#include "tandem/device/stream.h"
#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Memory of a worker, kept from image to image.
struct PhotoScratch {
  ResizeScratch resize;
  std::vector<std::uint8_t> narrowed, copy;
  std::vector<std::int32_t> weights;
  Image box;  // what was decoded last
};

// An RGB photograph of the size the draw was made for → recipe.height × recipe.width × 3 bytes.
void make_photo(const PhotoRecipe& recipe, const PhotoDraw& draw, const ImageView& photo, std::uint8_t* out,
                PhotoScratch& scratch);

// The same where only draw.box of the photograph is at hand, as it is or at another scale.
void make_photo_from_box(const PhotoRecipe& recipe, const PhotoDraw& draw, const ImageView& box,
                         std::uint8_t* out, PhotoScratch& scratch);

// Where a photograph lies among the pixels of many, RGB without gaps. Of height 0: it is not there, and black
// stands for it.
struct PhotoPlace {
  std::int64_t offset = 0, height = 0, width = 0;
};

// out[i] = photograph samples[i] with the draws of (seed, epoch, samples[i]). pixels: u8; places: i64 (count,
// 3), the fields of a PhotoPlace; samples: i32; out: u8 (count, height, width, 3); all on one device. A
// sample that is not there is an Error on the CPU; on CUDA, where looking would mean waiting for the device,
// its image is black. The places are believed.
void photo_batch(const PhotoRecipe& recipe, std::uint64_t seed, std::int64_t epoch, const Tensor& pixels,
                 const Tensor& places, const Tensor& samples, const Tensor& out);

struct PhotoBatch {
  PhotoRecipe recipe;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::uint8_t* pixels = nullptr;
  const PhotoPlace* places = nullptr;
  std::int64_t photo_count = 0;
  const std::int32_t* samples = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
};

template <Backend B>
void photo_kernel(const PhotoBatch& batch, StreamView stream);

}  // namespace tandem
