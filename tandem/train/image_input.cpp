#include "tandem/train/image_input.h"

#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"

namespace tandem {

Tensor network_input(const Tensor& images, const ImageInput& input, DType dtype) {
  const std::int64_t count = images.size(0);
  if (input.flat) return multiply(cast(images.reshape({count, -1}), DType::f32), input.pixel_scale);
  return normalize_images(images.reshape({count, input.height, input.width, input.channels}), input.norm,
                          dtype);
}

}  // namespace tandem
