// Test-time augmentation: the mean of the probabilities of several views of an image.
#pragma once

#include <string>
#include <vector>

#include "tandem/tensor/tensor.h"
#include "tandem/train/model_file.h"

namespace tandem {

inline constexpr int max_views = 12;

/// The number of views of "none" (1), "flip" (2) or a number from 2 to 12. Throws Error for others.
int parse_views(const std::string& text);

/// View `index` of images, u8 (n, height, width, channels) or (n, height, width) on the CPU. 0: the images;
/// 2, 4, …: the center, top left, top right, bottom left and bottom right 7/8 of their height and width,
/// resized back. Odd ones are the one before, mirrored.
Tensor view_of(const Tensor& images, int index);

/// The mean over the first `views` views of the probabilities, calibrated as the model file says: images ×
/// classes, row-major.
std::vector<float> mean_probabilities(Module& module, const ModelInfo& info, const Tensor& images, int views);

}  // namespace tandem
