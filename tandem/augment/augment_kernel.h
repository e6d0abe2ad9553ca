// The kernel behind augment_batch().
#pragma once

#include <cstdint>

#include "tandem/augment/recipe.h"
#include "tandem/device/stream.h"
#include "tandem/image/image.h"

namespace tandem::detail {

struct AugmentBatch {
  Recipe recipe;
  ImageSize size;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::uint8_t* images = nullptr;
  std::int32_t image_count = 0;
  const std::int32_t* samples = nullptr;
  const std::int32_t* keys = nullptr;  // RandomKey::sample of each image; null: its sample
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
};

template <Backend B>
void augment_kernel(const AugmentBatch& batch, StreamView stream);

}  // namespace tandem::detail
