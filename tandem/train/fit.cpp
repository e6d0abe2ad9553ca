#include "tandem/train/fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/data/loader/sample_store.h"
#include "tandem/text/utf8.h"
#include "tandem/train/run_folds.h"
#include "tandem/train/training_run.h"
#include "tandem/train/warm_start.h"

namespace tandem {
namespace {

void check_dataset(const Dataset& dataset, const char* name) {
  const std::int64_t count = dataset.size(), classes = std::ssize(dataset.classes());
  check(count > 0, "[fit] expected images in the {} set, got none", name);
  check(classes > 0, "[fit] expected classes in the {} set, got none", name);
  for (const std::string& one : dataset.classes())
    check(is_utf8(one), "[fit] expected names of classes in UTF-8, got '{}'", one_line(one));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t label = dataset.label(i);
    if (label < 0 || label >= classes)  // describe() is for the error alone
      fail("[fit] expected labels from 0 to {} in the {} set, got {} for {}", classes - 1, name, label,
           one_line(dataset.describe(i)));
  }
}

PhotoSet read_all(const Dataset& dataset, const Transform& transform) {
  const auto* const in_memory = dynamic_cast<const ImageDataset*>(&dataset);
  if (in_memory && transform.empty()) return {.images = in_memory->images(), .names = {}, .bad = {}};
  return materialize_named(dataset, transform);
}

void check_same_classes(const std::vector<std::string>& train, const std::vector<std::string>& validation) {
  const auto listed = [](const std::vector<std::string>& names) {
    constexpr std::ptrdiff_t max_names = 8;
    const auto end = names.begin() + std::min<std::ptrdiff_t>(max_names, std::ssize(names));
    return one_line(
        fmt::format("{}{}", fmt::join(names.begin(), end, ", "), end == names.end() ? "" : ", …"));
  };
  check(train == validation,
        "[fit] expected the same classes for training and validation, got {} ({}) and {} ({})", train.size(),
        listed(train), validation.size(), listed(validation));
}

// The training images. The caller owns the data set.
TrainingData make_training_data(const Dataset& train, const FitOptions& options) {
  check_dataset(train, "training");
  const ImageSize size = train.sample_store()->image_size(options.transform);
  check(!options.evaluation_transform().resizes() || size.height == size.width,
        "[fit] expected a transform to square images, got {}x{}", size.height, size.width);
  TrainingData data;
  data.name = data.source = options.data_name;
  data.train = TrainingImages(std::shared_ptr<const Dataset>(std::shared_ptr<const void>(), &train), size,
                              options.transform.resizes());
  const Transform evaluation = options.evaluation_transform();
  data.evaluation_transform = evaluation.resizes() ? evaluation.to_string() : "";
  return data;
}

void add_validation_data(TrainingData& data, const Dataset& validation, const FitOptions& options) {
  check_dataset(validation, "validation");
  check_same_classes(data.train.classes, validation.classes());
  PhotoSet validated = read_all(validation, options.evaluation_transform());
  const Tensor& images = validated.images.images;
  check(images.size(1) == data.train.height && images.size(2) == data.train.width &&
            images.size(3) == data.train.channels,
        "[fit] expected images of one size for training and validation, got {} and {}",
        image_description(data.train), image_description(validated.images));
  data.validation = data.test = validated.images;
  data.validated_on = data.tested_on = "validation";
  data.validation_names = data.test_names = std::move(validated.names);
  data.bad = std::move(validated.bad);
}

// Runs the model on one image, so that a model that does not fit the data fails before the run folder exists.
void check_outputs(Module& model, const TrainingData& data, const ImageInput& input) {
  const Tensor outputs = compute_outputs(model, data.validation.images.slice(0, 0, 1), input);
  const std::int64_t classes = std::ssize(data.train.classes);
  check(outputs.rank() == 2 && outputs.size(0) == 1 && outputs.size(1) == classes,
        "[fit] expected a model with outputs of shape [n, {}] for {} classes, got {} for 1 image", classes,
        classes, outputs.shape().to_string());
}

// Calls run(setup) with everything but the validation images, which `add_images` adds.
template <class AddImages, class Run>
TrainResult run_in_place(Module& model, const Dataset& train, const FitOptions& options,
                         const FitCallbacks& callbacks, const AddImages& add_images, const Run& run) {
  check_fit_options(options);
  check(!model.parameters().empty(), "[fit] expected a model with parameters, got none");
  if (!options.run_folder.empty()) check_run_folder(options.run_folder, options.resume);
  RunSetup setup;
  setup.timeline = start_timeline(options);
  const std::future<void> warm_up = start_warm_up(options, true);
  {
    const TimelineSpan span(setup.timeline.get(), "load data", {});
    setup.data = make_training_data(train, options);
    add_images(setup);
  }
  const TrainingImages& images = setup.data.train;
  setup.options = options;
  if (options.transform.resizes()) setup.options.transform = options.transform.photo();
  setup.architecture = {.model = options.model_name,
                        .layers = {},
                        .channels = images.channels,
                        .classes = std::ssize(images.classes),
                        .loss = options.output_kind()};
  check(!setup.architecture.expects_flat_input(), "[fit] expected a model_name of a model of images, got {}",
        options.model_name);
  setup.input = {.flat = false,
                 .height = images.height,
                 .width = images.width,
                 .channels = images.channels,
                 .norm = options.norm};
  setup.config = [](const FitOptions& chosen) { return to_table(chosen); };
  check_outputs(model, setup.data, setup.input);
  if (callbacks.on_message) callbacks.on_message(data_description(setup.data));
  if (warm_up.valid()) warm_up.wait();
  const bool was_training = model.is_training();
  TrainResult result = run(std::move(setup));
  model.train(was_training);
  return result;
}

}  // namespace

TrainResult fit(Module& model, const Dataset& train, const Dataset& validation, const FitOptions& options,
                const FitCallbacks& callbacks) {
  return run_in_place(
      model, train, options, callbacks,
      [&](RunSetup& setup) { add_validation_data(setup.data, validation, options); },
      [&](RunSetup setup) { return TrainingRun(std::move(setup), model, callbacks).run(); });
}

TrainResult cross_validate(Module& model, const Dataset& data, std::int64_t folds, const FitOptions& options,
                           const FitCallbacks& callbacks) {
  check(options.early_stopping == 0,
        "[cross_validate] expected early_stopping = 0, because folds choose nothing, got {}",
        options.early_stopping);
  return run_in_place(
      model, data, options, callbacks,
      [&](RunSetup& setup) { add_folds(setup, options.evaluation_transform(), folds, options.seed); },
      [&](RunSetup setup) { return run_folds(std::move(setup), model, callbacks); });
}

}  // namespace tandem
