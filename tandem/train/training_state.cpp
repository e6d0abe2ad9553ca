#include "tandem/train/training_state.h"

#include <fmt/ranges.h>

#include "tandem/augment/recipe.h"
#include "tandem/core/check.h"
#include "tandem/data/augmented_source.h"
#include "tandem/data/traced_source.h"

namespace tandem {
namespace {

std::unique_ptr<Module> model_on(const TrainOptions& options, Device device) {
  std::unique_ptr<Module> model = make_model(architecture_of(options), options.seed);
  model->to(device);
  return model;
}

BatchPlan batches_of(const TrainOptions& options, const ImageSet& images) {
  return {.samples = images.count(),
          .batch_size = options.batch_size,
          .batches_per_epoch = options.batches_per_epoch,
          .seed = options.seed};
}

std::unique_ptr<BatchSource> source_of(const TrainOptions& options, const ImageSet& images, Device device,
                                       const MessageFunction& on_message, Timeline* timeline) {
  const BatchPlan batches = batches_of(options, images);
  const Recipe recipe = parse_recipe(options.augment);
  if (recipe.empty()) return std::make_unique<StoredImages>(images.to(device), batches);
  if (device.is_cuda() && options.augment_on == "gpu")
    return std::make_unique<DeviceAugmentedImages>(images.to(device), batches, recipe);
  LoaderOptions loader = options.loader_options();
  if (!device.is_cuda() && loader.workers == 0)
    return std::make_unique<DeviceAugmentedImages>(images, batches, recipe, timeline);
  loader.on_message = on_message;
  loader.timeline = timeline;
  if (device.is_cuda()) return std::make_unique<CopiedImages>(images, batches, recipe, loader, device);
  return std::make_unique<LoadedImages>(images, batches, recipe, loader);
}

std::unique_ptr<BatchSource> traced_source_of(const TrainOptions& options, const ImageSet& images,
                                              Device device, const MessageFunction& on_message,
                                              Timeline* timeline) {
  auto source = source_of(options, images, device, on_message, timeline);
  if (!timeline) return source;
  const char* on_device = options.augment == "none"     ? "order images"
                          : options.augment_on == "gpu" ? "augment"
                                                        : "wait for images";
  return std::make_unique<TracedSource>(std::move(source), *timeline, on_device);
}

}  // namespace

Architecture architecture_of(const TrainOptions& options) {
  return {.model = options.model,
          .layers = options.layers,
          .activation = options.activation,
          .loss = options.loss,
          .dropout = options.dropout};
}

TrainingState::TrainingState(const TrainOptions& options, const ImageSet& images, Device device,
                             const MessageFunction& on_message, Timeline* timeline)
    : model_(model_on(options, device)),
      optimizer_(model_->parameters(), options.update_options(), options.learning_rate),
      source_(traced_source_of(options, images, device, on_message, timeline)),
      task_{.model = *model_,
            .optimizer = optimizer_,
            .source = *source_,
            .schedule = options.schedule_options(),
            .learning_rate = options.learning_rate,
            .loss = options.loss,
            .label_smoothing = options.label_smoothing,
            .precision = options.precision} {}

Engine& TrainingState::engine() {
  if (!engine_) engine_ = make_engine(task_);
  return *engine_;
}

void check_fit(const TrainOptions& options, const ImageSet& images) {
  const auto classes = static_cast<std::int64_t>(images.classes.size());
  check(options.layers.front() == images.image_size() && options.layers.back() == classes,
        "[train] expected layers from {} inputs ({} images) to {} classes, got {}", images.image_size(),
        image_description(images), classes, fmt::join(options.layers, ","));
}

}  // namespace tandem
