#include "tandem/train/load_plugin.h"

#include "tandem/augment/augment_plugin.h"
#include "tandem/core/check.h"
#include "tandem/nn/model_plugin.h"

namespace tandem {

void load_plugin(const std::filesystem::path& library) {
  const PluginLibrary plugin(library);
  const bool augments = has_augmentation(plugin), models = has_models(plugin);
  check(augments || models,
        "[plugin] {} has neither an operation (tandem_augment) nor a model (tandem_register)",
        library.string());
  if (augments) load_augmentation(library);
  if (models) load_models(plugin, library);
}

}  // namespace tandem
