#include "tandem/train/training_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/augment/transform.h"
#include "tandem/core/check.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/data/loader/traced_source.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/model_registry.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/optim/optimizer_registry.h"

namespace tandem {
namespace {

NamedTensors trainable_parameters(const Module& model) {
  NamedTensors all = model.parameters();
  std::erase_if(all, [](const NamedTensor& named) { return !named.tensor.requires_grad(); });
  return all;
}

// By the stage of each parameter, from the last layer, whose factor is 1.
std::vector<double> rate_factors(const Module& model, const NamedTensors& parameters, double decay) {
  const auto* const network = dynamic_cast<const BackboneModel*>(&model);
  check(network != nullptr, "[train] stage_lr_decay requires a model with stages, a BackboneModel");
  std::vector<double> factors;
  for (const NamedTensor& parameter : parameters)
    factors.push_back(
        std::pow(decay, static_cast<double>(network->stage_count() - network->stage_of(parameter.name))));
  return factors;
}

std::unique_ptr<Optimizer> make_optimizer_of(const Module& model, const FitOptions& options) {
  NamedTensors parameters = trainable_parameters(model);
  check(!parameters.empty(), "[fit] expected a model with parameters that require gradients, got none");
  if (!options.make_optimizer)
    return make_optimizer(options.optimizer, std::move(parameters), options.update_options(),
                          options.learning_rate);
  std::unique_ptr<Optimizer> optimizer = options.make_optimizer(std::move(parameters));
  check(optimizer != nullptr, "[fit] expected make_optimizer to return an optimizer, got a null pointer");
  return optimizer;
}

// Whether a parameter is the bias of a batch norm: it stands beside running statistics.
bool is_norm_bias(const std::string& name, const NamedTensors& buffers) {
  constexpr std::string_view bias = "bias";
  if (!name.ends_with(bias)) return false;
  const std::string statistics = name.substr(0, name.size() - bias.size()) + "running_mean";
  return std::ranges::find(buffers, statistics, &NamedTensor::name) != buffers.end();
}

std::unique_ptr<Optimizer> optimizer_for(const Module& model, const FitOptions& options) {
  std::unique_ptr<Optimizer> optimizer = make_optimizer_of(model, options);
  if (options.stage_lr_decay == 1 && options.norm_bias_lr == 1) return optimizer;
  check(optimizer->fused() != nullptr, "[train] {} requires optimizer sgd, adam or adamw, got {}",
        options.stage_lr_decay == 1 ? "norm_bias_lr" : "stage_lr_decay",
        options.make_optimizer ? "one of the caller" : options.optimizer);
  const NamedTensors& parameters = optimizer->parameters();
  std::vector<double> rates(parameters.size(), 1), decays(parameters.size(), 1);
  if (options.stage_lr_decay != 1) rates = rate_factors(model, parameters, options.stage_lr_decay);
  const NamedTensors buffers = model.buffers();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_norm_bias(parameters[i].name, buffers)) continue;
    rates[i] *= options.norm_bias_lr;
    decays[i] = 1 / options.norm_bias_lr;
  }
  optimizer->fused()->set_rate_factors(std::move(rates), std::move(decays));
  return optimizer;
}

BatchPart part_of_rank(const FitOptions& options, const Group* group) {
  BatchPart part{.shards = options.shards, .own = {0, options.shards}};
  const std::int64_t ranks = group ? group->place().size : 1;
  check(options.accumulate >= 1, "[train] expected 1 pass per batch or more, got {}", options.accumulate);
  check(options.accumulate == 1 || options.accumulate * ranks <= options.shards,
        "[train] expected at least {} shards for {} passes on each of {} ranks, got {}",
        options.accumulate * ranks, options.accumulate, ranks, options.shards);
  if (!group) return part;
  const Place& place = group->place();
  check(place.size <= options.shards, "[train] expected at most {} ranks, one per shard of a batch, got {}",
        options.shards, place.size);
  part.own = part_of(options.shards, place.size, place.rank);
  part.previous_row = !options.mix_recipe().empty() && !part.is_whole();
  return part;
}

ClassLists class_lists_of(const FitOptions& options, const TrainingImages& images) {
  if (!options.balanced_sampling) return {};
  return {images.count(), [&](std::int64_t i) { return images.dataset->label(i); }};
}

BatchPlan batches_of(const FitOptions& options, const TrainingImages& images, const ClassLists& classes,
                     const Group* group) {
  return {.samples = images.count(),
          .batch_size = options.batch_size,
          .batches_per_epoch = options.batches_per_epoch,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .balanced = classes.table(),
          .part = part_of_rank(options, group)};
}

std::unique_ptr<BatchSource> source_of(const FitOptions& options, const TrainingImages& images,
                                       const ClassLists& classes, Device device,
                                       const MessageFunction& on_message, Timeline* timeline,
                                       const Group* group) {
  LoaderOptions loader;
  loader.workers = options.workers.value_or(default_worker_count());
  loader.kind = options.worker_kind;
  loader.prefetch = static_cast<int>(options.prefetch);
  loader.worker_timeout_s = options.worker_timeout;
  loader.epochs = options.epochs;
  loader.on_message = on_message;
  loader.timeline = timeline;
  auto source = make_source(images.dataset->sample_store(), batches_of(options, images, classes, group),
                            options.transform, device, loader, options.augment_on != AugmentPlace::cpu);
  if (!timeline) return source;
  const bool is_plain = options.transform.empty();
  const char* on_device = is_plain                                  ? "order images"
                          : options.augment_on == AugmentPlace::gpu ? "augment"
                                                                    : "wait for images";
  return std::make_unique<TracedSource>(std::move(source), *timeline, on_device);
}

Tensor class_weights_of(const FitOptions& options, const TrainingImages& images, Device device) {
  if (options.class_weights.empty()) return {};
  const std::vector<double> values =
      options.class_weights.values(images.classes, count_classes(*images.dataset));
  return Tensor::from(std::vector<float>(values.begin(), values.end()), {std::ssize(values)}, device);
}

}  // namespace

Architecture architecture_of(const TrainOptions& options, const TrainingImages& images) {
  return {.model = options.model,
          .layers = options.layers,
          .channels = images.channels,
          .classes = std::ssize(images.classes),
          .activation = options.activation,
          .loss = options.output_kind(),
          .dropout = options.dropout};
}

ImageInput input_of(const TrainOptions& options, const TrainingImages& images) {
  return {.flat = architecture_of(options, images).expects_flat_input(),
          .height = images.height,
          .width = images.width,
          .channels = images.channels,
          .norm = options.norm};
}

std::unique_ptr<Module> new_model(const TrainOptions& options, const TrainingImages& images) {
  std::unique_ptr<Module> model = make_model(architecture_of(options, images), options.seed);
  auto* const network = dynamic_cast<BackboneModel*>(model.get());
  check(network || (!options.freeze && options.freeze_stages == 0 && options.stage_lr_decay == 1),
        "[train] freeze and stage_lr_decay require a model with stages and a last layer, got {}",
        options.model);
  if (!network) return model;
  if (options.freeze) network->freeze_backbone();
  network->freeze_stages(options.freeze_stages);
  if (options.freeze_bn) network->freeze_statistics();
  return model;
}

std::string frozen_text(const TrainOptions& options) {
  if (!options.freeze && options.freeze_stages == 0) return "";
  const std::int64_t stages = options.freeze_stages;
  std::string text = options.freeze ? ", all but the last layer frozen"
                     : stages == 1  ? ", the first stage frozen"
                                    : fmt::format(", the first {} stages frozen", stages);
  if (options.unfreeze_at > 0) text += fmt::format(" before epoch {}", options.unfreeze_at);
  return text;
}

bool has_convolutions(const Module& model) {
  return std::ranges::any_of(model.parameters(),
                             [](const NamedTensor& named) { return named.tensor.rank() == 4; });
}

MatmulPrecision precision_for(const FitOptions& options, const Module& model, Device device) {
  if (options.precision) return *options.precision;
  return device.is_cuda() && has_convolutions(model) ? MatmulPrecision::tf32 : MatmulPrecision::fp32;
}

TrainingState::TrainingState(Module& model, const FitOptions& options, const TrainingImages& images,
                             const ImageInput& input, Device device, const MessageFunction& on_message,
                             Timeline* timeline, Group* group)
    : model_((model.to(device), model)),
      optimizer_(optimizer_for(model_, options)),
      average_(options.ema > 0 ? std::make_unique<WeightAverage>(model_, options.ema) : nullptr),
      lookahead_(options.lookahead > 0
                     ? std::make_unique<Lookahead>(model_, LookaheadOptions{.decay = options.lookahead})
                     : nullptr),
      classes_(class_lists_of(options, images)),
      source_(source_of(options, images, classes_, device, on_message, timeline, group)),
      task_{.model = model_,
            .optimizer = *optimizer_,
            .source = *source_,
            .schedule = options.schedule_options(),
            .learning_rate = options.learning_rate,
            .loss = options.loss,
            .label_smoothing = options.label_smoothing,
            .focal_gamma = options.loss == LossKind::focal ? options.focal_gamma : 0,
            .class_weights = class_weights_of(options, images, device),
            .clip_norm = options.clip_norm,
            .average = average_.get(),
            .lookahead = lookahead_.get(),
            .precision = precision_for(options, model_, device),
            .input = input,
            .mix = options.mix_recipe(),
            .loss_function = options.loss_function,
            .capture_graphs = options.capture_graphs,
            .batch_norm = options.batch_norm,
            .accumulate = options.accumulate,
            .group = group && group->place().size > 1 ? group : nullptr,
            .exchange_through_cpu = options.exchange_through_cpu} {}

TrainingState::TrainingState(std::unique_ptr<Module> model, const TrainOptions& options,
                             const TrainingImages& images, Device device)
    : TrainingState(*model, options, images, input_of(options, images), device) {
  own_model_ = std::move(model);
}

TrainingState::TrainingState(const TrainOptions& options, const TrainingImages& images, Device device)
    : TrainingState(new_model(options, images), options, images, device) {}

Engine& TrainingState::engine() {
  if (!engine_) engine_ = make_engine(task_);
  return *engine_;
}

void check_model_fits_data(const TrainOptions& options, const TrainingImages& images) {
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
