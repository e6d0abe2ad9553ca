// A model whose features are probed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tandem/core/registry.h"
#include "tandem/data/dataset.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/train/feature_rows.h"
#include "tandem/train/model_file.h"

namespace tandem {

struct ProbeModel {
  std::string name;     // as given
  std::string weights;  // where they are from
  ModelInfo info;       // the size and the norm of its input
  std::unique_ptr<BackboneModel> module;
  bool calibrates = false;  // its batch-norm statistics are to be computed from training images
};

// Weights that have a name, for any architecture with a backbone.
struct NamedWeights {
  std::string name;
  std::string summary;
  // Writes them into a model of that architecture, which has random weights; null: these.
  std::function<void(BackboneModel& model, const std::string& architecture)> load;
};

// random, imagenet and scenes.
const Registry<NamedWeights>& named_weights();

struct ProbeModelOptions {
  std::string architecture = "resnet18";  // of names and of weight files that do not state theirs
  std::int64_t image_size = 112;          // for those
  bool resizes_all = false;               // image_size is also for models that state their own
  std::uint64_t seed = 1;                 // of random weights
};

// A name of named_weights(), a model that load_model() reads, or a file of weights of options.architecture.
// Throws Error for anything else, and for a model without a backbone.
ProbeModel load_probe_model(const std::string& model, const ProbeModelOptions& options);

using FeatureProgress = std::function<void(std::int64_t done, std::int64_t images)>;

// BackboneModel::stage_features() of these images of the data set, in evaluation mode, on the model's device.
// The images are resized as the model's file says, else by area, and converted to gray or RGB.
Features compute_features(ProbeModel& model, const Dataset& dataset, std::span<const std::int64_t> images,
                          const FeatureProgress& on_progress = {});

// Replaces the statistics of all batch norms by their means over batches of these images.
void calibrate_statistics(ProbeModel& model, const Dataset& dataset, std::span<const std::int64_t> images);

}  // namespace tandem
