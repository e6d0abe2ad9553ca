// Augmentation operations from plugins (tandem/plugin.h).
#pragma once

#include <filesystem>

#include "tandem/core/plugin_library.h"

namespace tandem {

// Whether the plugin has an operation.
bool has_augmentation(const PluginLibrary& plugin);
// Loads the plugin and registers its operation. Throws Error when a function is missing, and as
// register_augmentation() does.
void load_augmentation(const std::filesystem::path& library);

}  // namespace tandem
