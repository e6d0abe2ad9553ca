// The kernel parameters of one fused pass of a recipe over many images (FusedPass in arguments.h explains
// passes).
#pragma once

#include <cstdint>

#include "tandem/augment/arguments.h"

namespace tandem::detail {

struct CudaPassParams {
  Recipe recipe;
  FusedPass pass;
  ImageSize size;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::int32_t* samples = nullptr;
  const std::int32_t* keys = nullptr;  // RandomKey::sample of each image
  const std::uint8_t* in = nullptr;
  std::int32_t image_count = 0;  // in the data set
  bool gathered = false;         // `in` holds the images of the batch, not those of the data set
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
  const float* coefficients = nullptr;  // of a cubic interpolation, one image after another

  __device__ RandomKey key(std::int64_t image) const {
    return {.seed = seed, .epoch = epoch, .sample = static_cast<std::uint32_t>(keys[image])};
  }
  __device__ const std::uint8_t* source(std::int64_t image) const {
    if (gathered) return in + image * size.bytes();
    const std::int32_t sample = samples[image];
    return in + (sample >= 0 && sample < image_count ? sample : 0) * size.bytes();
  }
  __device__ SampledStep sample(RandomKey key, int step) const {
    key.operation = static_cast<std::uint32_t>(step);
    return sample_step(recipe.steps[step], size, key);
  }
};

}  // namespace tandem::detail
