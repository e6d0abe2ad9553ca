// How images of bytes enter a network: as rows of numbers (a perceptron) or as normalised images.
#pragma once

#include <cstdint>

#include "tandem/ops/normalize.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct ImageInput {
  bool flat = true;
  float pixel_scale = 1.0f / 255.0f;                 // of rows: a pixel p enters as p · pixel_scale
  std::int64_t height = 0, width = 0, channels = 0;  // of images
  PixelNorm norm = {};
};

// u8 (n, …), each of the input's size → (n, size) in f32, or (n, height, width, channels) in `dtype`.
Tensor network_input(const Tensor& images, const ImageInput& input, DType dtype = DType::f32);

}  // namespace tandem
