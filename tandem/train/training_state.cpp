#include "tandem/train/training_state.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tandem/augment/recipe.h"
#include "tandem/core/check.h"
#include "tandem/data/loader/augmented_source.h"
#include "tandem/data/loader/photo_source.h"
#include "tandem/data/loader/traced_source.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/model_registry.h"
#include "tandem/optim/optimizer_registry.h"

namespace tandem {
namespace {

std::unique_ptr<Module> moved_to(std::unique_ptr<Module> model, Device device) {
  model->to(device);
  return model;
}

NamedTensors trainable_parameters(const Module& model) {
  NamedTensors all = model.parameters();
  std::erase_if(all, [](const NamedTensor& named) { return !named.tensor.requires_grad(); });
  return all;
}

BatchPlan batches_of(const TrainOptions& options, const TrainingImages& images) {
  return {.samples = images.count(),
          .batch_size = options.batch_size,
          .batches_per_epoch = options.batches_per_epoch,
          .seed = options.seed};
}

std::unique_ptr<BatchSource> photos_of(const TrainOptions& options, const TrainingImages& images,
                                       Device device, const LoaderOptions& loader) {
  const BatchPlan batches = batches_of(options, images);
  const PhotoRecipe recipe = options.photo_recipe();
  if (device.is_cuda() && options.augment_on == "cpu")
    return std::make_unique<DevicePrefetcher>(images.photos, batches, recipe, loader, device);
  if (!device.is_cuda() && loader.workers == 0 && images.photos->table().decoded())
    return std::make_unique<DevicePhotos>(images.photos, batches, recipe, device, loader.timeline);
  return photo_source(images.photos, batches, recipe, device, loader);
}

std::unique_ptr<BatchSource> set_of(const TrainOptions& options, const ImageSet& images, Device device,
                                    const LoaderOptions& loader) {
  const BatchPlan batches = batches_of(options, images);
  const Recipe recipe = parse_recipe(options.augment);
  if (recipe.empty()) return std::make_unique<InMemorySource>(images.to(device), batches);
  if (device.is_cuda() && options.augment_on == "gpu")
    return std::make_unique<DeviceAugmentedImages>(images.to(device), batches, recipe);
  if (!device.is_cuda() && loader.workers == 0)
    return std::make_unique<DeviceAugmentedImages>(images, batches, recipe, loader.timeline);
  if (device.is_cuda()) return std::make_unique<DevicePrefetcher>(images, batches, recipe, loader, device);
  return std::make_unique<HostPrefetcher>(images, batches, recipe, loader);
}

std::unique_ptr<BatchSource> source_of(const TrainOptions& options, const TrainingImages& images,
                                       Device device, const MessageFunction& on_message, Timeline* timeline) {
  LoaderOptions loader = options.loader_options();
  loader.on_message = on_message;
  loader.timeline = timeline;
  auto source = images.photos ? photos_of(options, images, device, loader)
                              : set_of(options, images.set, device, loader);
  if (!timeline) return source;
  const bool is_plain = !images.photos && options.augment == "none";
  const char* on_device = is_plain                      ? "order images"
                          : options.augment_on == "gpu" ? "augment"
                                                        : "wait for images";
  return std::make_unique<TracedSource>(std::move(source), *timeline, on_device);
}

}  // namespace

Architecture architecture_of(const TrainOptions& options, const TrainingImages& images) {
  return {.model = options.model,
          .layers = options.layers,
          .channels = images.channels,
          .classes = std::ssize(images.classes),
          .activation = options.activation,
          .loss = options.loss,
          .dropout = options.dropout};
}

ImageInput input_of(const TrainOptions& options, const TrainingImages& images) {
  return {.flat = architecture_of(options, images).expects_flat_input(),
          .height = images.height,
          .width = images.width,
          .channels = images.channels,
          .norm = images.photos ? imagenet_norm : PixelNorm{}};
}

std::unique_ptr<Module> new_model(const TrainOptions& options, const TrainingImages& images) {
  std::unique_ptr<Module> model = make_model(architecture_of(options, images), options.seed);
  if (auto* const network = dynamic_cast<BackboneModel*>(model.get())) {
    if (options.freeze) network->freeze_backbone();
    if (options.freeze_bn) network->freeze_statistics();
  }
  return model;
}

TrainingState::TrainingState(std::unique_ptr<Module> model, const TrainOptions& options,
                             const TrainingImages& images, Device device, const MessageFunction& on_message,
                             Timeline* timeline)
    : model_(moved_to(std::move(model), device)),
      optimizer_(make_optimizer(options.optimizer, trainable_parameters(*model_), options.update_options(),
                                options.learning_rate)),
      source_(source_of(options, images, device, on_message, timeline)),
      task_{.model = *model_,
            .optimizer = *optimizer_,
            .source = *source_,
            .schedule = options.schedule_options(),
            .learning_rate = options.learning_rate,
            .loss = options.loss,
            .label_smoothing = options.label_smoothing,
            .precision = options.precision,
            .input = input_of(options, images),
            .mix = options.mix_recipe()} {}

Engine& TrainingState::engine() {
  if (!engine_) engine_ = make_engine(task_);
  return *engine_;
}

void check_model_fits_data(const TrainOptions& options, const TrainingImages& images) {
  if (images.photos)
    options.photo_recipe();
  else
    check(!is_photo_recipe(options.augment),
          "[train] expected a recipe for images of one size, such as digits or 'rotate -12 12, shift -2 2', "
          "got one for photographs: '{}'",
          options.augment);
  if (!architecture_of(options, images).expects_flat_input()) {
    const std::int64_t min_side = models().get(options.model).min_side;
    check(std::min(images.height, images.width) >= min_side && images.channels <= max_image_channels,
          "[train] expected images of {0}x{0} or more with at most {1} channels for {2}, got {3}", min_side,
          max_image_channels, options.model, image_description(images));
    return;
  }
  const std::int64_t classes = std::ssize(images.classes);
  const std::int64_t inputs = images.height * images.width * images.channels;
  check(options.layers.front() == inputs && options.layers.back() == classes,
        "[train] expected layers from {} inputs ({} images) to {} classes, got {}", inputs,
        image_description(images), classes, fmt::join(options.layers, ","));
}

}  // namespace tandem
