#include "tandem/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/files/fetch.h"
#include "tandem/files/read_file.h"
#include "tandem/nn/initialized_from_data.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/load_weights.h"
#include "tandem/train/pretrained.h"
#include "tandem/train/progress.h"
#include "tandem/train/rank_device.h"
#include "tandem/train/ranks.h"
#include "tandem/train/run_folds.h"
#include "tandem/train/spaced_images.h"
#include "tandem/train/training_run.h"
#include "tandem/train/warm_start.h"

namespace tandem {
namespace {

bool continues(const TrainOptions& options) {
  return options.resume && has_checkpoint(RunFolder{options.run_folder});
}

// The weights that options.pretrained means, as rank 0 finds them, unless a checkpoint will replace them.
std::string choose_on_first_rank(const TrainOptions& options, Group& group, const WeightsFetcher& fetch,
                                 std::int64_t images, const MessageFunction& on_message) {
  ChosenWeights chosen{.name = options.pretrained};
  if (group.place().rank == 0 && !continues(options)) chosen = choose_weights(options, fetch);
  if (on_message && !chosen.problem.empty()) on_message(fallback_line(options.model, chosen, images));
  return broadcast_text(group, chosen.name);
}

// Loads the initial weights, unless a checkpoint will replace them, and says which they are.
void load_starting_weights(Module& model, const TrainOptions& options, const WeightsFetcher& fetch,
                           const MessageFunction& on_message) {
  if (continues(options)) return;
  const std::filesystem::path file = find_weights(options, fetch);
  if (!file.empty()) load_weights(model, file, options.keep_head);
  if (!on_message) return;
  if (!file.empty())
    on_message(fmt::format("Weights: {}, with {} last layer{}{}", describe_weights(options.pretrained),
                           options.keep_head ? "its" : "a new", frozen_text(options),
                           options.freeze_bn ? ", batch-norm statistics frozen" : ""));
  else if (options.freeze || options.freeze_stages > 0)
    on_message(fmt::format(
        "Warning: {} frozen with random weights, which are features of nothing: train all layers, or start "
        "from pretrained weights",
        options.freeze ? "all layers but the last are" : "the first stages are"));
}

// Computes the weights that come from images, unless weights are loaded.
void initialize_from(const TrainingImages& images, const TrainOptions& options, Module& model) {
  auto* const initialized = dynamic_cast<InitializedFromData*>(&model);
  if (!initialized || options.pretrained != "none" || continues(options)) return;
  initialized->initialize(
      spaced_images(images, options.evaluation_transform(), initialized->images_for_initialization()),
      options.norm);
}

std::vector<Fact> weight_facts(const TrainOptions& options) {
  if (options.pretrained == "none" && frozen_text(options).empty()) return {};
  return {
      {"initial weights", fmt::format("{}{}{}", describe_weights(options.pretrained), frozen_text(options),
                                      options.freeze_bn ? ", batch-norm statistics frozen" : "")}};
}

// The options as asked for, with what was measured.
TomlTable config_of(TrainOptions options, const FitOptions& chosen) {
  options.device = chosen.device;
  options.augment_on = chosen.augment_on;
  options.workers = chosen.workers;
  options.precision = chosen.precision;
  options.learning_rate = chosen.learning_rate;
  options.batch_size = chosen.batch_size;
  return to_table(options);
}

// Photographs that were held out for validation stay so when the run is resumed, also if others came or went.
std::set<std::string> kept_validation(const TrainOptions& options) {
  const std::filesystem::path list = RunFolder{options.run_folder}.data();
  std::error_code ignored;
  if (!options.resume || !std::filesystem::exists(list, ignored)) return {};
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 32;
  const DataList before = parse_data_list(read_file("train", list, max_bytes), list.string());
  std::set<std::string> names(before.unreadable.begin(), before.unreadable.end());
  for (const DataList::Sample& sample : before.validation) names.insert(sample.name);
  return names;
}

}  // namespace

TrainResult train(const TrainOptions& options, const FitCallbacks& callbacks) {
  return train(options, *solo_group(), callbacks);
}

TrainResult train(const TrainOptions& given, Group& group, const FitCallbacks& all_callbacks) {
  const bool is_first = group.place().rank == 0;
  FitCallbacks callbacks = all_callbacks;
  if (!is_first)
    callbacks = {.stop_signal = all_callbacks.stop_signal, .save_requested = all_callbacks.save_requested};
  TrainOptions asked = given;
  if (given.folds == 0) asked.kept_validation = kept_validation(given);
  if (asked.feature_precision != FeaturePrecision::automatic) asked.freeze_bn = true;
  check_options(asked);
  if (is_first && !asked.run_folder.empty()) check_run_folder(asked.run_folder, asked.resume);
  RunSetup setup;
  setup.timeline = start_timeline(asked, group.place());
  FitOptions here = asked;
  if (group.place().size > 1)
    here.device = device_of_rank(group.place(), asked.device.value_or(default_device()));
  const std::future<void> warm_up = start_warm_up(here, !models().get(asked.model).flat_input);
  {
    const TimelineSpan span(setup.timeline.get(), "load data", {});
    TrainOptions wanted = asked;
    if (gives_weights(asked)) wanted.from.clear();
    if (asked.folds > 0) wanted.validation = 0;
    const RenderObserver observer = observe_rendering(callbacks.on_progress);
    setup.data = load_training_data(wanted, callbacks.on_message);
    if (asked.folds > 0) {
      const TrainOptions resolved = resolve_options(asked, setup.data.train.photographs);
      add_folds(setup, resolved.evaluation_transform(), asked.folds, asked.seed);
      setup.data.validation_note = fmt::format(
          "{} folds with the same share of each class; each image is predicted by a model that did not see "
          "it",
          asked.folds);
    }
  }
  const WeightsFetcher fetch = [&](const std::string& name) {
    return fetch_weights(name, weights_fetch_options(asked, callbacks.on_message));
  };
  const TrainingImages& images = setup.data.train;
  asked.pretrained = choose_on_first_rank(asked, group, fetch, images.count(), callbacks.on_message);
  const TrainOptions options = resolve_options(asked, images.photographs);
  // A recipe of crops and flips only is stored as what it means for these images.
  if (asked.transform.resizes()) asked.transform = options.transform;
  check_model_fits_data(options, images);
  check(asked.early_stopping == 0 || setup.data.chooses_model,
        "[train] early_stopping requires images held out for validation, got validation = 0");
  if (callbacks.on_message) {
    callbacks.on_message(data_description(setup.data));
    if (!setup.data.validation_note.empty())
      callbacks.on_message("Validation: " + setup.data.validation_note);
  }
  const std::unique_ptr<Module> model = new_model(options, images);  // while the GPU warms up
  load_starting_weights(*model, options, fetch, callbacks.on_message);
  initialize_from(images, options, *model);
  setup.options = options;
  setup.options.data_name = setup.data.name;
  setup.options.model_name = options.model;
  setup.architecture = architecture_of(options, images);
  setup.input = input_of(options, images);
  setup.facts = weight_facts(options);
  setup.group = &group;
  setup.config = [&asked](const FitOptions& chosen) { return config_of(asked, chosen); };
  if (warm_up.valid()) warm_up.wait();
  if (asked.folds > 0) return run_folds(std::move(setup), *model, callbacks);
  return TrainingRun(std::move(setup), *model, callbacks).run();
}

}  // namespace tandem
