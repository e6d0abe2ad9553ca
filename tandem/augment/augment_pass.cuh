// One pass of a recipe over many images on CUDA, as its kernels take it (draw.h says what a pass is).
#pragma once

#include <cstdint>

#include "tandem/augment/augment.h"

namespace tandem {

struct PassOnDevice {
  Recipe recipe;
  AugmentPass pass;
  ImageSize size;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  const std::int32_t* samples = nullptr;
  const std::uint8_t* in = nullptr;
  std::int32_t images = 0;  // in the data set
  bool gathered = false;    // image i of `in` is image i of the batch, not of the data set
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
  const float* coefficients = nullptr;  // of a cubic rotation, image after image

  __device__ DrawKey key(std::int64_t image) const {
    return {.seed = seed, .epoch = epoch, .sample = static_cast<std::uint32_t>(samples[image])};
  }
  __device__ const std::uint8_t* source(std::int64_t image) const {
    if (gathered) return in + image * size.bytes();
    const std::int32_t sample = samples[image];
    return in + (sample >= 0 && sample < images ? sample : 0) * size.bytes();
  }
  __device__ DrawnStep draw(DrawKey key, int step) const {
    key.operation = static_cast<std::uint32_t>(step);
    return draw_step(recipe.steps[step], size, key);
  }
};

}  // namespace tandem
