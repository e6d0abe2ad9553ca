// Weights that ship with Tandem, made from rendered scenes (docs/pretraining.md). They need no network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/core/registry.h"

namespace tandem {

/// The weights of one model.
struct ShippedWeights {
  std::string name;  ///< of the model: "resnet18"
  std::string file;  ///< "resnet18-scenes.safetensors"
};

/// The models whose weights ship with Tandem.
const Registry<ShippedWeights>& shipped_weights();

/// Where the files are looked for: the folder that TANDEM_WEIGHTS names; without that variable
/// share/tandem/weights beside the program's folder, and the folder of the source code.
std::vector<std::filesystem::path> shipped_weights_folders();

/// Returns the file of a model's weights. Throws Error if the model has none, or if the file is in none of
/// shipped_weights_folders(). The file's contents are not checked.
std::filesystem::path find_shipped_weights(const std::string& model);

}  // namespace tandem
