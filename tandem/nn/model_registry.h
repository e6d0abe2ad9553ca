// The models that can be named, as in `--model resnet18` and in model files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tandem/core/registry.h"
#include "tandem/nn/architecture.h"
#include "tandem/nn/module.h"

namespace tandem {

/// Hyperparameters that suit a model: the defaults of the train command.
struct TrainingDefaults {
  std::int64_t epochs = 10;
  std::int64_t batch_size = 64;
  std::string optimizer = "adam";
  double learning_rate = 1e-3;
};

/// One model.
struct ModelRow {
  std::string name;
  std::string summary;
  /// Constructs it on the CPU, with weights from the seed.
  std::function<std::unique_ptr<Module>(const Architecture& architecture, std::uint64_t seed)> make;
  bool flat_input = false;    ///< takes rows (n, pixels), not images (n, height, width, channels)
  std::int64_t min_side = 8;  ///< height and width of the smallest image it accepts
  bool normalized = false;    ///< small images, too, are normalized by imagenet_norm, as photographs are
  TrainingDefaults defaults = {};
};

/// mlp, cnn, resnet18, … and the registered ones.
const Registry<ModelRow>& models();
/// Adds a model, so that files that name it can be loaded; throws Error for a name that is taken. Not
/// thread-safe: call it before other threads start.
void register_model(ModelRow row);
/// A new network; throws Error for an unknown model, and as its constructor does.
std::unique_ptr<Module> make_model(const Architecture& architecture, std::uint64_t seed = 1);

}  // namespace tandem
