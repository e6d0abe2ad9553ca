// The table of fields is built by a few functions, one per kind of value, each with its own check.
#include "tandem/train/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/nn/model_registry.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t max_count = std::int64_t{1} << 40;

// Whether a field is one of FitOptions, from the class of its member pointer.
template <class O>
constexpr bool is_of_fit = std::is_same_v<O, FitOptions>;

std::string quoted(const TomlValue& value) {
  return fmt::format("'{}'", plain_text(value));
}

template <class O>
TrainField integer(const char* key, std::int64_t O::*member, std::int64_t min, std::int64_t max,
                   const char* help) {
  return {key,
          TrainField::Kind::integer,
          "N",
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            const auto* number = std::get_if<std::int64_t>(&value);
            check(number != nullptr && *number >= min && *number <= max,
                  "expected a whole number from {} to {}, got {}", min, max, quoted(value));
            options.*member = *number;
          },
          is_of_fit<O>};
}

// The value lies in [min, end), or in (min, end) if `open`.
template <class O>
TrainField real(const char* key, double O::*member, double min, bool open, double end, const char* help) {
  return {
      key,
      TrainField::Kind::real,
      "X",
      help,
      [member](const TrainOptions& options) { return TomlValue(options.*member); },
      [=](TrainOptions& options, const TomlValue& value) {
        const auto* whole = std::get_if<std::int64_t>(&value);
        const auto* fractional = std::get_if<double>(&value);
        const double given = whole ? static_cast<double>(*whole) : fractional ? *fractional : std::nan("");
        check(std::isfinite(given) && (open ? given > min : given >= min) && given < end,
              "expected a number {}{}, got {}",
              open ? fmt::format("above {}", min) : fmt::format("of {} or more", min),
              end < infinity ? fmt::format(" and below {}", end) : "", quoted(value));
        options.*member = given;
      },
      is_of_fit<O>};
}

// A number that can also be measured: "auto" in texts, 0 in the options.
template <class T>
TrainField or_auto(TrainField field, T FitOptions::*member) {
  field.get = [member, number = field.get](const TrainOptions& options) {
    return options.*member == 0 ? TomlValue(std::string("auto")) : number(options);
  };
  field.set = [member, set = field.set](TrainOptions& options, const TomlValue& value) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text && *text == "auto")
      options.*member = 0;
    else
      set(options, value);
  };
  return field;
}

template <class O>
TrainField flag(const char* key, bool O::*member, const char* help) {
  return {key,
          TrainField::Kind::flag,
          "",
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            const auto* given = std::get_if<bool>(&value);
            check(given != nullptr, "expected true or false, got {}", quoted(value));
            options.*member = *given;
          },
          is_of_fit<O>};
}

const std::string& text_in(const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  check(text != nullptr, "expected text in quotes, got {}", plain_text(value));
  check(is_utf8(*text), "expected text in UTF-8, got '{}'", one_line(*text));  // run folders store no other
  return *text;
}

TrainField text(const char* key, std::string TrainOptions::*member, const char* value_name, const char* help,
                void (*check_text)(const std::string&)) {
  return {key,
          TrainField::Kind::text,
          value_name,
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            check_text(text_in(value));
            options.*member = text_in(value);
          }};
}

template <class T>
using Names = std::vector<std::pair<const char*, T>>;

template <class O, class T>
TrainField choice(const char* key, T O::*member, Names<T> names, const char* help,
                  const char* value_name = "NAME") {
  return {key,
          TrainField::Kind::text,
          value_name,
          help,
          [=](const TrainOptions& options) {
            const auto found = std::ranges::find(names, options.*member, &Names<T>::value_type::second);
            expect(found != names.end());
            return TomlValue(std::string(found->first));
          },
          [=](TrainOptions& options, const TomlValue& value) {
            std::vector<std::string> known;
            for (const auto& [name, meaning] : names) {
              if (text_in(value) == name) {
                options.*member = meaning;
                return;
              }
              known.emplace_back(name);
            }
            fail("expected one of {}, got {}{}", fmt::join(known, ", "), quoted(value),
                 did_you_mean(text_in(value), known));
          },
          is_of_fit<O>};
}

// The texts of a registry, which stay valid: fields point to them.
template <class Row>
const char* choices_of(const Registry<Row>& registry) {
  static const std::string text = registry.choices();
  return text.c_str();
}
template <class Row, class T>
Names<T> names_of(const Registry<Row>& registry, T Row::*member) {
  Names<T> names;
  for (const Row& row : registry.rows()) names.emplace_back(row.name.c_str(), row.*member);
  return names;
}

// The name of a row, which may be registered after the table of fields was made.
template <class Row, class O>
TrainField registered(const char* key, std::string O::*member, const Registry<Row>& registry) {
  return {key,
          TrainField::Kind::text,
          "NAME",
          choices_of(registry),
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [member, &registry](TrainOptions& options, const TomlValue& value) {
            check(registry.find(text_in(value)) != nullptr, "{}", registry.unknown(text_in(value)));
            options.*member = text_in(value);
          },
          is_of_fit<O>};
}

TrainField layer_sizes() {
  return {"layers",
          TrainField::Kind::sizes,
          "SIZES",
          "Sizes from the input to the classes",
          [](const TrainOptions& options) {
            return TomlValue(TomlList(options.layers.begin(), options.layers.end()));
          },
          [](TrainOptions& options, const TomlValue& value) {
            const auto* list = std::get_if<TomlList>(&value);
            std::vector<std::int64_t> sizes;
            for (const TomlValue& part : list ? *list : TomlList{})
              if (const auto* size = std::get_if<std::int64_t>(&part); size && *size > 0 && *size <= 1 << 24)
                sizes.push_back(*size);
            check(list != nullptr && sizes.size() == list->size() && sizes.size() >= 2,
                  "expected two or more sizes from 1 to {}, such as 784,200,10, got {}", 1 << 24,
                  quoted(value));
            options.layers = std::move(sizes);
          }};
}

TrainField seed() {
  return {"seed",
          TrainField::Kind::integer,
          "N",
          "Of all random numbers",
          [](const TrainOptions& options) { return TomlValue(static_cast<std::int64_t>(options.seed)); },
          [](TrainOptions& options, const TomlValue& value) {
            const auto* given = std::get_if<std::int64_t>(&value);
            check(given != nullptr && *given >= 0, "expected a whole number of 0 or more, got {}",
                  quoted(value));
            options.seed = static_cast<std::uint64_t>(*given);
          },
          true};
}

void any_text(const std::string&) {}
void nonempty_text(const std::string& given) {
  check(!given.empty(), "expected a name, got ''");
}
// An option that is chosen by measurement unless it is given; "auto" in texts.
template <class T>
TrainField optional_text(const char* key, std::optional<T> FitOptions::*member, const char* value_name,
                         const char* help, std::string (*format)(T), T (*parse)(const std::string&)) {
  return {key,
          TrainField::Kind::text,
          value_name,
          help,
          [=](const TrainOptions& options) {
            return TomlValue(options.*member ? format(*(options.*member)) : std::string("auto"));
          },
          [=](TrainOptions& options, const TomlValue& value) {
            options.*member =
                text_in(value) == "auto" ? std::optional<T>() : std::optional<T>(parse(text_in(value)));
          },
          true};
}

int parse_worker_count(const std::string& given) {
  int count = -1;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), count);
  const bool whole = error == std::errc{} && end == given.data() + given.size();
  check(whole && count >= 0 && count <= max_workers, "expected auto or a whole number from 0 to {}, got '{}'",
        max_workers, given);
  return count;
}

MatmulPrecision parse_requested_precision(const std::string& given) {
  try {
    return parse_precision(given);
  } catch (const Error&) {
    fail("expected one of auto, fp32, tf32, bf16, got '{}'", given);
  }
}

Device parse_requested_device(const std::string& given) {
  try {
    return parse_device_name(given);
  } catch (const Error&) {
    fail("expected auto, cpu, cuda or a device such as cuda:1, got '{}'", given);
  }
}

// Stored as operations with their bounds, so that a saved run does not change if a named recipe does.
TrainField augmentation() {
  return {"augment",
          TrainField::Kind::text,
          "RECIPE",
          "none, digits, photo (default for photographs), or 'crop, flip 0.5'",
          [](const TrainOptions& options) { return TomlValue(options.transform.to_string()); },
          [](TrainOptions& options, const TomlValue& value) {
            options.transform = Transform::parse(text_in(value), 1);
          },
          true};
}

// true: all but the last layer; a number: so many stages.
TrainField frozen_layers() {
  return {"freeze",
          TrainField::Kind::flag,
          "[N]",
          "Train the last layer only; N: not the first N stages",
          [](const TrainOptions& options) {
            return options.freeze_stages > 0 ? TomlValue(options.freeze_stages) : TomlValue(options.freeze);
          },
          [](TrainOptions& options, const TomlValue& value) {
            const auto* given = std::get_if<bool>(&value);
            const auto* stages = std::get_if<std::int64_t>(&value);
            check(given || (stages && *stages >= 1),
                  "expected true, false or a number of stages from 1, got {}", quoted(value));
            options.freeze = given && *given;
            options.freeze_stages = stages ? *stages : 0;
          }};
}

TrainField class_weights() {
  return {"class_weights",
          TrainField::Kind::text,
          "WEIGHTS",
          "Of classes in the loss: none, balanced (by their number of images), or cat=2,dog=0.5",
          [](const TrainOptions& options) { return TomlValue(options.class_weights.to_string()); },
          [](TrainOptions& options, const TomlValue& value) {
            options.class_weights = ClassWeights::parse(text_in(value));
          },
          true};
}

TrainField threshold() {
  return {
      "threshold",
      TrainField::Kind::text,
      "auto|X",
      "Of two classes, predict the second from this probability on; auto: chosen on the validation images "
      "(Youden's J)",
      [](const TrainOptions& options) { return TomlValue(options.threshold.to_string()); },
      [](TrainOptions& options, const TomlValue& value) {
        const auto* const number = std::get_if<double>(&value);
        options.threshold = ThresholdRequest::parse(number ? fmt::format("{}", *number) : text_in(value));
      },
      true};
}

TrainField validation() {
  return {"validation",
          TrainField::Kind::text,
          "N",
          "Training images held out to choose the model: auto (every 10th), N or 0",
          [](const TrainOptions& options) {
            return options.validation ? TomlValue(*options.validation) : TomlValue(std::string("auto"));
          },
          [](TrainOptions& options, const TomlValue& value) {
            const auto* const given = std::get_if<std::string>(&value);
            const auto* const whole = std::get_if<std::int64_t>(&value);
            const std::optional<std::int64_t> count = whole   ? std::optional(*whole)
                                                      : given ? parse_number<std::int64_t>(*given)
                                                              : std::nullopt;
            const bool is_auto = given && *given == "auto";
            check(is_auto || (count && *count >= 0 && *count <= max_count),
                  "expected auto or a whole number from 0 to {}, got {}", max_count, quoted(value));
            options.validation = is_auto ? std::nullopt : count;
          }};
}

const char* data_help() {
  static const std::string text = datasets().list() + ", or a folder";
  return text.c_str();
}

std::vector<TrainField> make_fields() {
  using O = TrainOptions;
  return {
      text("data", &O::data, "DATA", data_help(), nonempty_text),
      text("from", &O::from, "PATH", "Folder or archive that holds the data set's files", any_text),
      registered("model", &O::model, models()),
      text("with", &O::with, "FILES", "A model or operation of your own: FILE.so, .c or .cpp", any_text),
      layer_sizes(),
      choice("activation", &O::activation, names_of(activations(), &ActivationRow::activation),
             choices_of(activations())),
      real("dropout", &O::dropout, 0, false, 1, "Probability of dropping a hidden value in training"),
      choice(
          "loss", &O::loss,
          Names<LossKind>{
              {"cross-entropy", LossKind::cross_entropy}, {"mse", LossKind::mse}, {"focal", LossKind::focal}},
          "cross-entropy, focal, or mse on sigmoid outputs"),
      real("focal_gamma", &O::focal_gamma, 0, false, infinity,
           "Of loss focal: 0 is cross-entropy, more counts images less that are classified well"),
      class_weights(),
      real("label_smoothing", &O::label_smoothing, 0, false, 1, "Probability spread over all classes"),
      integer("epochs", &O::epochs, 1, 1 << 24, "Passes over the data"),
      or_auto(integer("batch_size", &O::batch_size, 1, 1 << 20, "Batch size, or auto: the fastest"),
              &O::batch_size),
      choice("shuffle", &O::shuffle, Names<bool>{{"epoch", true}, {"none", false}},
             "epoch: another order in each; none: the stored order, always", "ORDER"),
      flag("balanced_sampling", &O::balanced_sampling, "Draw every class equally often, whatever its images"),
      integer("batches_per_epoch", &O::batches_per_epoch, 0, std::int64_t{1} << 31,
              "Random batches per epoch; 0: all of the data"),
      integer("shards", &O::shards, 1, 1 << 20,
              "Parts of a batch that ranks share; the bits depend on it, not on the ranks"),
      choice("batch_norm", &O::batch_norm,
             Names<ShardNorm>{{"batch", ShardNorm::batch}, {"shard", ShardNorm::shard}},
             "With shards, batch norms use the statistics of the whole batch or of each shard", "PART"),
      or_auto(real("lr", &O::learning_rate, 0, true, infinity, "Learning rate, or auto: by a range test"),
              &O::learning_rate),
      registered("optimizer", &O::optimizer, optimizers()),
      real("momentum", &O::momentum, 0, false, 1, "Momentum, of an optimizer that has it"),
      flag("nesterov", &O::nesterov, "Nesterov momentum"),
      real("weight_decay", &O::weight_decay, 0, false, infinity, "Weight decay"),
      real("clip_norm", &O::clip_norm, 0, false, infinity,
           "Scale gradients down to this norm of all together; 0: off"),
      real("ema", &O::ema, 0, false, 1,
           "Validate and keep a moving average of the weights with this decay, such as 0.999; 0: off"),
      real("lookahead", &O::lookahead, 0, false, 1,
           "Go on from slow weights every 5 steps, with this decay, such as 0.95; 0: off"),
      real("norm_bias_lr", &O::norm_bias_lr, 0, true, infinity,
           "Biases of batch norms have this many times the learning rate"),
      real("stage_lr_decay", &O::stage_lr_decay, 0, true, infinity,
           "Each stage of the network has this many times the learning rate of the next; 1: the same"),
      choice("schedule", &O::schedule, names_of(schedules(), &ScheduleRow::kind), choices_of(schedules())),
      integer("step_size", &O::step_size, 1, max_count, "Epochs between reductions, for schedule step"),
      real("gamma", &O::gamma, 0, true, infinity, "Factor of each reduction, for schedule step"),
      real("min_lr", &O::min_lr, 0, false, infinity,
           "Final learning rate of schedules cosine and triangular"),
      real("pct_start", &O::pct_start, 0, false, 1,
           "Fraction of the run with a rising rate, for schedules one_cycle and triangular"),
      integer("warmup_steps", &O::warmup_steps, 0, max_count,
              "Steps during which the learning rate rises from 0"),
      real("warmup_epochs", &O::warmup_epochs, 0, false, 1 << 24, "The same in epochs, such as 5 or 0.5"),
      integer("early_stopping", &O::early_stopping, 0, max_count,
              "Stop after N epochs without a better accuracy; 0: never"),
      flag("calibrate", &O::calibrate,
           "Fit a temperature to the validation images: probabilities then tell how often the model is "
           "right"),
      threshold(),
      choice(
          "test_views", &O::test_views,
          Names<TestViews>{{"one", TestViews::one}, {"flip", TestViews::flip}, {"shift", TestViews::shift}},
          "Views of a test image that are averaged: one, flip (and its mirror image), or shift (both, and "
          "both moved by a pixel)"),
      augmentation(),
      choice("augment_on", &O::augment_on,
             Names<AugmentPlace>{
                 {"auto", AugmentPlace::automatic}, {"cpu", AugmentPlace::cpu}, {"gpu", AugmentPlace::gpu}},
             "auto (the faster one, measured), cpu or gpu", "PLACE"),
      optional_text<int>(
          "workers", &O::workers, "N", "Threads or processes that augment; 0: none",
          [](int count) { return std::to_string(count); }, parse_worker_count),
      choice("worker_kind", &O::worker_kind,
             Names<WorkerKind>{{"thread", WorkerKind::thread}, {"process", WorkerKind::process}},
             "thread or process"),
      integer("prefetch", &O::prefetch, 0, 1 << 20,
              "Blocks of images prepared in advance; 0: twice the workers"),
      real("worker_timeout", &O::worker_timeout, 0, true, infinity,
           "Seconds without progress after which a worker is replaced"),
      integer("image_size", &O::image_size, 8, 4096, "Height and width to which photographs are resized"),
      choice(
          "fit", &O::fit,
          Names<PhotoFit>{
              {"stretch", PhotoFit::resize}, {"crop", PhotoFit::center}, {"letterbox", PhotoFit::letterbox}},
          "How validation photographs are fitted: stretch, crop (the center, after a resize to 8/7 of the "
          "size) or letterbox (padded)"),
      choice("on_bad_image", &O::on_bad_image,
             Names<OnBadImage>{{"skip", OnBadImage::skip}, {"fail", OnBadImage::fail}},
             "skip or fail, if a photograph cannot be read"),
      integer("max_pixels", &O::max_pixels, 1, max_count, "Reject photographs with more pixels"),
      flag("scaled_decode", &O::scaled_decode,
           "Decode JPEGs at reduced size where possible: faster, not exact"),
      flag("hardware_decode", &O::hardware_decode,
           "Decode JPEGs on the GPU's JPEG engine, if it has one; everywhere with plain chroma upsampling"),
      text("pretrained", &O::pretrained, "WEIGHTS",
           "Initial weights: imagenet, scenes (ship with Tandem), none, a file, or auto: the first that is "
           "there",
           nonempty_text),
      flag("keep_head", &O::keep_head, "Keep the last layer of the initial weights instead of a new one"),
      frozen_layers(),
      integer("unfreeze_at", &O::unfreeze_at, 0, 1 << 24,
              "After --freeze: train all layers from epoch N on; 0: never"),
      flag("freeze_bn", &O::freeze_bn,
           "Freeze batch-norm statistics: the default for few images and pretrained weights, unless =false"),
      flag("fit_head", &O::fit_head,
           "Epoch 1 fits the last layer by logistic regression: the default for few photographs and "
           "pretrained "
           "weights, unless =false"),
      real("mixup", &O::mixup, 0, false, infinity, "Blend each image with its neighbor: α of Beta; 0: off"),
      real("cutmix", &O::cutmix, 0, false, infinity,
           "Paste a box of the neighbor into each image: α of Beta; 0: off"),
      seed(),
      integer("limit", &O::limit, 0, max_count, "Train on the first N images; 0: all"),
      validation(),
      integer("folds", &O::folds, 0, 10000,
              "Cross-validate with K folds, then train on all images: each is predicted by a model that did "
              "not see it; 0: no. Default: 10 or 5 where only the last layer is fitted"),
      optional_text<Device>(
          "device", &O::device, "DEVICE", "auto (the faster one, measured), cpu, cuda or cuda:N",
          [](Device device) { return device.to_string(); }, parse_requested_device),
      optional_text<MatmulPrecision>(
          "precision", &O::precision, "NAME",
          "fp32, bf16, tf32 (on a GPU), or auto (tf32 for convolutional networks on a GPU, else fp32)",
          [](MatmulPrecision precision) { return std::string(name_of(precision)); },
          parse_requested_precision),
      choice(
          "feature_precision", &O::feature_precision,
          Names<FeaturePrecision>{{"auto", FeaturePrecision::automatic},
                                  {"bf16", FeaturePrecision::bf16},
                                  {"int8", FeaturePrecision::int8}},
          "With --freeze on the CPU: train the last layer over features in bf16 or int8 (ResNets); accuracy "
          "in fp32 is shown too"),
  };
}

}  // namespace

std::span<const TrainField> train_fields() {
  static const std::vector<TrainField> fields = make_fields();
  return fields;
}

const TrainField& train_field(std::string_view key) {
  const auto found = std::ranges::find(train_fields(), key, &TrainField::key);
  expect(found != train_fields().end());
  return *found;
}

}  // namespace tandem
