// Loads pretrained weights as the starting point of a training run.
#pragma once

#include <filesystem>

#include "tandem/nn/module.h"

namespace tandem {

/// Loads the weights of a file (.pth or .safetensors) into the model. If the file has no last layer ("fc"),
/// or one for another number of classes, the model keeps its own and the result is true.
/// "num_batches_tracked" may be missing in the file. Any other difference, or a weight that is not finite,
/// throws an Error that names the tensors, and nothing is changed.
bool load_weights(Module& model, const std::filesystem::path& path);

}  // namespace tandem
