// Defaults that depend on the model and the data, presets, and which options can be combined.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/files/fetch.h"
#include "tandem/files/shipped_weights.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/options.h"

namespace tandem {
namespace {

// With fewer training images than this, the batch-norm statistics of pretrained weights are kept: so few
// images estimate them badly.
constexpr std::int64_t min_images_for_statistics = 500;

// Up to so many photographs, the last layer over pretrained features is fitted by logistic regression. It
// takes seconds, and 40 photographs of six two-class tasks gave a mean AUC of 0.81, against 0.59 by gradient
// steps.
constexpr std::int64_t max_images_for_fit = 2000;
// Below so many, the other layers stay as pretrained: on those tasks, training them after the fit gave 0.80
// to 0.81.
constexpr std::int64_t min_images_for_tuning = 100;

// At least four steps per epoch, of eight images or more; with few images about 500 steps in all.
void suit_few_images(TrainOptions& options, const DefaultsFor& data) {
  constexpr std::int64_t few_images = 500, few_steps = 500, max_epochs = 100;
  const auto quarter =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(data.training_images / 4)));
  options.batch_size = std::min(options.batch_size, std::max<std::int64_t>(quarter, 8));
  if (data.training_images >= few_images) return;
  options.schedule = ScheduleKind::cosine;
  if (data.pretrained) return;
  const std::int64_t steps = (data.training_images + options.batch_size - 1) / options.batch_size;
  options.epochs = std::max(options.epochs, std::min(few_steps / steps, max_epochs));
  options.transform = Transform::parse("crop 0.35 1, flip, jitter 0.4 0.4 0.4 0.1", 1);
  options.image_size = 64;
}

// Of a model that has a backbone, and a last layer to fit.
bool has_backbone_weights(const std::string& model) {
  return has_weights(model) || shipped_weights().find(model) != nullptr;
}

void set_best(TrainOptions& options) {
  options.model = "mlp";
  options.layers = {784, 1000, 1000, 10};
  options.activation = Activation::relu;
  options.dropout = 0.1;
  options.label_smoothing = 0.05;
  options.epochs = 40;
  options.batch_size = 128;
  options.optimizer = "sgd";
  options.learning_rate = 0.2;
  options.momentum = 0.9;
  options.nesterov = true;
  options.weight_decay = 1e-4;
  options.schedule = ScheduleKind::one_cycle;
  options.transform = Transform::parse("rotate -15 15, shift -2 2, skew -0.2 0.2");
}

// The hyperparameters of airbench94 (Jordan 2024), which has them for the sum of the losses and for steps
// that momentum does not lengthen: 11.5 and 0.0153 per 1,024 images, divided by 1 + 1 / (1 − momentum).
void set_record(TrainOptions& options) {
  constexpr double momentum = 0.85, scale = 1 + 1 / (1 - momentum), rate = 11.5 / scale;
  options.model = "whitened_cnn";
  options.epochs = 10;
  options.batch_size = 1024;
  options.batches_per_epoch = 48;  // whole ones
  options.optimizer = "sgd";
  options.learning_rate = rate;
  options.momentum = momentum;
  options.nesterov = true;
  options.weight_decay = 0.0153 / scale / rate;
  options.norm_bias_lr = 64;
  options.schedule = ScheduleKind::triangular;
  options.pct_start = 0.23;
  options.min_lr = 0.07 * rate;
  options.lookahead = 0.95;
  options.label_smoothing = 0.2;
  options.transform = Transform::parse("flip alternating, shift -2 2 reflect");
  options.precision = MatmulPrecision::bf16;
  options.validation = 0;
  options.test_views = TestViews::shift;
}

}  // namespace

TrainOptions default_options(const std::string& model, const DefaultsFor& data) {
  TrainOptions options;
  options.model = model;
  if (data.photographs) options.transform = training_transform(1);
  const ModelRow& row = models().get(model);
  const TrainingDefaults& defaults = row.defaults;
  options.optimizer = defaults.optimizer;
  options.learning_rate = defaults.learning_rate;
  options.batch_size = defaults.batch_size;
  options.epochs = defaults.epochs;
  if (data.pretrained && !data.frozen) options.learning_rate /= 10;
  options.freeze_bn = data.pretrained && !row.flat_input && data.training_images > 0 &&
                      data.training_images < min_images_for_statistics;
  if (data.photographs && data.training_images > 0 && !row.flat_input) suit_few_images(options, data);
  options.fit_head = data.photographs && data.pretrained && !data.keeps_head && data.fits_head &&
                     data.training_images > 0 && data.training_images <= max_images_for_fit &&
                     has_backbone_weights(model);
  if (options.fit_head && (data.frozen || data.training_images < min_images_for_tuning)) options.epochs = 1;
  return options;
}

std::int64_t default_folds(const TrainOptions& options, std::int64_t smallest_class) {
  const bool suits =
      !options.has_steps() && !options.validation && options.early_stopping == 0 && options.limit == 0;
  return !suits || smallest_class < 10 ? 0 : smallest_class < 20 ? 5 : 10;
}

const Registry<PresetRow>& presets() {
  static const Registry<PresetRow> rows(
      "preset", {{"best", "accurate perceptron", set_best}, {"record", "fast CIFAR-10", set_record}});
  return rows;
}

void apply_preset(TrainOptions& options, const std::string& name) {
  const PresetRow* const preset = presets().find(name);
  check(preset != nullptr, "{}", presets().unknown(name));
  preset->set(options);
}

void check_options(const TrainOptions& options) {
  check_fit_options(options, "train");
  check(options.folds != 1, "[train] expected two folds or more, or 0 for no cross-validation, got 1");
  check(options.folds == 0 || !options.validation,
        "[train] expected no validation count with folds, which hold out every image in turn, got {}",
        options.validation.value_or(0));
  check(options.folds == 0 || options.early_stopping == 0,
        "[train] early_stopping requires images held out for validation, got {} folds: their images are "
        "measured and choose nothing",
        options.folds);
  check(!options.scaled_decode || !options.hardware_decode,
        "[train] expected scaled_decode or hardware_decode, which decodes at full size, got both");
  const bool is_flat = models().get(options.model).flat_input;
  check(!is_flat || (!options.freeze && options.freeze_stages == 0 && !options.freeze_bn &&
                     options.pretrained == "none"),
        "[train] pretrained, freeze and freeze_bn require a model of images, got {}", options.model);
  check(!is_flat || options.stage_lr_decay == 1, "[train] stage_lr_decay requires a model of images, got {}",
        options.model);
  check(options.unfreeze_at == 0 || options.freeze || options.freeze_stages > 0,
        "[train] unfreeze_at requires freeze: no layer is frozen");
  check(!is_flat || !options.fit_head, "[train] fit_head requires a model of images, got {}", options.model);
  check(!options.keep_head || !options.fit_head,
        "[train] expected keep_head or fit_head, which replaces the last layer, got both");
  check(!options.keep_head || options.pretrained != "none",
        "[train] expected pretrained weights whose last layer keep_head keeps, got none");
  check(is_flat || (options.loss != LossKind::mse && options.dropout == 0),
        "[train] loss mse and dropout require model mlp, got {}", options.model);
  check(!is_flat || options.mix_recipe().empty(),
        "[train] mixup and cutmix require a model of images, got {}", options.model);
  const bool is_published = has_weights(options.model);
  const bool is_shipped = shipped_weights().find(options.model) != nullptr;
  check(options.pretrained != "auto" || is_published || is_shipped,
        "[train] expected a file or none as pretrained for {}, got auto: no weights are published for it",
        options.model);
  check(options.pretrained != "imagenet" || is_published,
        "[train] expected a model with published ImageNet weights ({}) for pretrained imagenet, got {}",
        weights_sources().list(), options.model);
  check(options.pretrained != "scenes" || is_shipped,
        "[train] expected a model whose weights ship with Tandem ({}) for pretrained scenes, got {}",
        shipped_weights().list(), options.model);
}

}  // namespace tandem
