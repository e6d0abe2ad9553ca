// Initial weights from a file, for transfer learning.
#pragma once

#include <filesystem>

#include "tandem/nn/module.h"

namespace tandem {

/// Loads the weights of a file (.pth or .safetensors) into the model, all but those of the last layer:
/// a new task has new classes. With `keep_head` the last layer is loaded too, and must have the model's
/// number of classes. Weights are converted from bf16, f32 or f64 to the dtype of the model.
/// The last layer of a BackboneModel is its head, that of another module is called "fc". Counters of training
/// steps, "num_batches_tracked" and "step", may be missing in the file. Any other difference, or a weight
/// that is not finite, throws an Error that names the tensors, and nothing is changed.
void load_weights(Module& model, const std::filesystem::path& path, bool keep_head = false);

}  // namespace tandem
