// Loads plugins (tandem/plugin.h) into this process: operations for recipes, and models.
#pragma once

#include <filesystem>

namespace tandem {

// Registers what the plugin has. Throws Error when it has neither an operation nor a model, cannot be loaded,
// was made for another version, or when a name is taken.
void load_plugin(const std::filesystem::path& library);

}  // namespace tandem
