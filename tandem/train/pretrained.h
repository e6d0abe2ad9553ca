// Weights somebody else has trained, to begin with.
#pragma once

#include <filesystem>

#include "tandem/nn/module.h"

namespace tandem {

// Loads the weights of a file (.pth or .safetensors) into the model. The last layer ("fc") is left as it is
// where the file's has another number of classes or none: true. Statistics the file does not count
// ("num_batches_tracked") stay too. Any other difference is an Error that names tensors and shapes, as is a
// NaN; then nothing is changed.
bool load_pretrained(Module& model, const std::filesystem::path& path);

}  // namespace tandem
