// Some images of a training set.
#pragma once

#include <cstdint>

#include "tandem/augment/transform.h"
#include "tandem/train/training_data.h"

namespace tandem {

// At most `max_count` readable images of the whole set, evenly spaced: folders are in the order of their
// classes. u8 (n, height, width, channels).
Tensor spaced_images(const TrainingImages& images, const Transform& transform, std::int64_t max_count);

}  // namespace tandem
