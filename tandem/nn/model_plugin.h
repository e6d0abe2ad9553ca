// Models from plugins: C++ code that was compiled with the headers of this very version
// (tandem/model_plugin.h).
#pragma once

#include <filesystem>

#include "tandem/core/plugin_library.h"

namespace tandem {

// Whether the plugin has models.
bool has_models(const PluginLibrary& plugin);
// Registers them. `file` is for messages. Throws Error for a plugin that was compiled with other headers or
// registers no model, and as register_model() does.
void load_models(const PluginLibrary& plugin, const std::filesystem::path& file);

}  // namespace tandem
