// The kernel behind transform_photo_batch().
#pragma once

#include <cstdint>

#include "tandem/augment/photo.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

struct PhotoBatch {
  PhotoRecipe recipe;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::uint8_t* pixels = nullptr;
  const PhotoLocation* locations = nullptr;
  std::int64_t photo_count = 0;
  const std::int32_t* samples = nullptr;
  const std::int32_t* keys = nullptr;  // RandomKey::sample of each photograph; null: its sample
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
};

template <Backend B>
void photo_kernel(const PhotoBatch& batch, StreamView stream);

}  // namespace tandem::detail
