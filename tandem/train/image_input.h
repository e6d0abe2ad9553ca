// How 8-bit images become a network's input: flat rows (a perceptron) or normalized images.
#pragma once

#include <cstdint>

#include "tandem/ops/normalize.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct ImageInput {
  bool flat = true;
  float pixel_scale = 1.0f / 255.0f;                 // flat rows: pixel p becomes p · pixel_scale
  std::int64_t height = 0, width = 0, channels = 0;  // images
  PixelNorm norm = {};
};

// u8 (n, …), each of the input's size → (n, size) in f32, or (n, height, width, channels) in `dtype`.
Tensor network_input(const Tensor& images, const ImageInput& input, DType dtype = DType::f32);

}  // namespace tandem
