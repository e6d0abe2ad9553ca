// The table of fields is built from a few makers, one a kind of value, each with its own check.
#include "tandem/train/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "tandem/augment/recipe.h"
#include "tandem/core/check.h"
#include "tandem/files/read_file.h"
#include "tandem/train/model_file.h"

namespace tandem {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::int64_t many = std::int64_t{1} << 40;

std::string shown(const TomlValue& value) {
  return fmt::format("'{}'", plain_text(value));
}

TrainField whole(const char* key, std::int64_t TrainOptions::*member, std::int64_t least, std::int64_t most,
                 const char* help) {
  return {key,
          TrainField::Kind::whole,
          "N",
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            const auto* number = std::get_if<std::int64_t>(&value);
            check(number != nullptr && *number >= least && *number <= most,
                  "expected a whole number from {} to {}, got {}", least, most, shown(value));
            options.*member = *number;
          }};
}

// `open` excludes the least value itself, and a finite `below` is excluded.
TrainField number(const char* key, double TrainOptions::*member, double least, bool open, double below,
                  const char* help) {
  return {key,
          TrainField::Kind::number,
          "X",
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            const auto* integer = std::get_if<std::int64_t>(&value);
            const auto* real = std::get_if<double>(&value);
            const double given = integer ? static_cast<double>(*integer) : real ? *real : std::nan("");
            check(std::isfinite(given) && (open ? given > least : given >= least) && given < below,
                  "expected a number {}{}, got {}",
                  open ? fmt::format("above {}", least) : fmt::format("of {} or more", least),
                  below < infinite ? fmt::format(" and below {}", below) : "", shown(value));
            options.*member = given;
          }};
}

TrainField flag(const char* key, bool TrainOptions::*member, const char* help) {
  return {key,
          TrainField::Kind::flag,
          "",
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            const auto* given = std::get_if<bool>(&value);
            check(given != nullptr, "expected true or false, got {}", shown(value));
            options.*member = *given;
          }};
}

const std::string& text_in(const TomlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  check(text != nullptr, "expected text in quotes, got {}", plain_text(value));
  return *text;
}

TrainField text(const char* key, std::string TrainOptions::*member, const char* value_name, const char* help,
                void (*judge)(const std::string&)) {
  return {key,
          TrainField::Kind::text,
          value_name,
          help,
          [member](const TrainOptions& options) { return TomlValue(options.*member); },
          [=](TrainOptions& options, const TomlValue& value) {
            judge(text_in(value));
            options.*member = text_in(value);
          }};
}

template <class T>
using Names = std::vector<std::pair<const char*, T>>;

template <class T>
TrainField choice(const char* key, T TrainOptions::*member, Names<T> names, const char* help) {
  return {key,
          TrainField::Kind::text,
          "NAME",
          help,
          [=](const TrainOptions& options) {
            const auto found = std::ranges::find(names, options.*member, &Names<T>::value_type::second);
            expect(found != names.end());
            return TomlValue(std::string(found->first));
          },
          [=](TrainOptions& options, const TomlValue& value) {
            std::string known;
            for (const auto& [name, meaning] : names) {
              if (text_in(value) == name) {
                options.*member = meaning;
                return;
              }
              known += (known.empty() ? "" : ", ") + std::string(name);
            }
            fail("expected one of {}, got {}", known, shown(value));
          }};
}

TrainField layer_sizes() {
  return {
      "layers",
      TrainField::Kind::sizes,
      "SIZES",
      "Sizes from the input to the classes: 784,200,10",
      [](const TrainOptions& options) {
        return TomlValue(TomlList(options.layers.begin(), options.layers.end()));
      },
      [](TrainOptions& options, const TomlValue& value) {
        const auto* list = std::get_if<TomlList>(&value);
        std::vector<std::int64_t> sizes;
        for (const TomlScalar& scalar : list ? *list : TomlList{})
          if (const auto* size = std::get_if<std::int64_t>(&scalar); size && *size > 0 && *size <= 1 << 24)
            sizes.push_back(*size);
        check(list != nullptr && sizes.size() == list->size() && sizes.size() >= 2,
              "expected two or more sizes from 1 to {}, such as 784,200,10, got {}", 1 << 24, shown(value));
        options.layers = std::move(sizes);
      }};
}

TrainField seed() {
  return {"seed",
          TrainField::Kind::whole,
          "N",
          "Of weights, order and dropout",
          [](const TrainOptions& options) { return TomlValue(static_cast<std::int64_t>(options.seed)); },
          [](TrainOptions& options, const TomlValue& value) {
            const auto* given = std::get_if<std::int64_t>(&value);
            check(given != nullptr && *given >= 0, "expected a whole number of 0 or more, got {}",
                  shown(value));
            options.seed = static_cast<std::uint64_t>(*given);
          }};
}

void any_text(const std::string&) {}
void some_text(const std::string& given) {
  check(!given.empty(), "expected a name, got ''");
}
void known_place(const std::string& given) {
  check(given == "auto" || given == "cpu" || given == "gpu", "expected auto, cpu or gpu, got '{}'", given);
}
constexpr int most_workers = 1024;
void worker_number(const std::string& given) {
  int count = -1;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), count);
  const bool whole = error == std::errc{} && end == given.data() + given.size();
  check(given == "auto" || (whole && count >= 0 && count <= most_workers),
        "expected auto or a whole number from 0 to {}, got '{}'", most_workers, given);
}
void known_model(const std::string& given) {
  const auto known = model_names();
  check(std::ranges::find(known, given) != known.end(), "expected one of {}, got '{}'",
        fmt::join(known, ", "), given);
}
void known_device(const std::string& given) {
  if (given == "auto") return;
  try {
    device_named(given);
  } catch (const Error&) {
    fail("expected auto, cpu, cuda or a device such as cuda:1, got '{}'", given);
  }
}

// Kept as operations with their bounds, so that a run is the same when a named recipe has become another.
TrainField augmentation() {
  return {
      "augment",
      TrainField::Kind::text,
      "RECIPE",
      "none, digits, photo (usual for photographs), or 'crop, flip 0.5'",
      [](const TrainOptions& options) { return TomlValue(options.augment); },
      [](TrainOptions& options, const TomlValue& value) { options.augment = normal_recipe(text_in(value)); }};
}

std::vector<TrainField> make_fields() {
  using O = TrainOptions;
  return {
      text("data", &O::data, "DATA", "digits, mnist, fashion-mnist, plates, or a folder", some_text),
      text("from", &O::from, "PATH", "A folder or archive to take the data set from", any_text),
      text("model", &O::model, "NAME", "mlp, cnn, resnet18, resnet34 or resnet50", known_model),
      layer_sizes(),
      choice("activation", &O::activation,
             Names<Activation>{
                 {"sigmoid", Activation::sigmoid}, {"tanh", Activation::tanh}, {"relu", Activation::relu}},
             "sigmoid, tanh or relu"),
      number("dropout", &O::dropout, 0, false, 1, "Share of hidden values dropped in training"),
      choice("loss", &O::loss,
             Names<LossKind>{{"cross-entropy", LossKind::cross_entropy}, {"mse", LossKind::mse}},
             "cross-entropy, or mse on sigmoid outputs"),
      number("label_smoothing", &O::label_smoothing, 0, false, 1, "Share spread over all classes"),
      whole("epochs", &O::epochs, 1, 1 << 24, "Passes over the data"),
      whole("batch_size", &O::batch_size, 1, 1 << 20, "Images a step"),
      whole("batches_per_epoch", &O::batches_per_epoch, 0, std::int64_t{1} << 31,
            "Random batches an epoch; 0: all of the data"),
      number("lr", &O::learning_rate, 0, true, infinite, "Learning rate"),
      choice("optimizer", &O::optimizer,
             Names<OptimizerKind>{
                 {"sgd", OptimizerKind::sgd}, {"adam", OptimizerKind::adam}, {"adamw", OptimizerKind::adamw}},
             "sgd, adam or adamw"),
      number("momentum", &O::momentum, 0, false, 1, "Of sgd"),
      flag("nesterov", &O::nesterov, "Nesterov's momentum"),
      number("weight_decay", &O::weight_decay, 0, false, infinite, "Pull of the weights towards 0"),
      choice("schedule", &O::schedule,
             Names<ScheduleKind>{{"constant", ScheduleKind::constant},
                                 {"step", ScheduleKind::step},
                                 {"cosine", ScheduleKind::cosine},
                                 {"one-cycle", ScheduleKind::one_cycle}},
             "constant, step, cosine or one-cycle"),
      whole("step_size", &O::step_size, 1, many, "Epochs between the reductions of schedule step"),
      number("gamma", &O::gamma, 0, true, infinite, "Factor of schedule step"),
      number("min_lr", &O::min_lr, 0, false, infinite, "Where schedule cosine ends"),
      whole("warmup_steps", &O::warmup_steps, 0, many, "Steps in which the rate rises from 0"),
      whole("early_stopping", &O::early_stopping, 0, many,
            "Stop after N epochs without a better accuracy; 0: never"),
      augmentation(),
      text("augment_on", &O::augment_on, "PLACE", "auto (the faster one, measured), cpu or gpu", known_place),
      text("workers", &O::workers, "N", "Augmenting threads or processes; auto: measured, 0: none",
           worker_number),
      choice("worker_kind", &O::worker_kind,
             Names<WorkerKind>{{"thread", WorkerKind::thread}, {"process", WorkerKind::process}},
             "thread or process"),
      whole("ahead", &O::ahead, 0, 1 << 20, "Blocks of images augmented ahead; 0: twice the workers"),
      number("worker_limit", &O::worker_limit, 0, true, infinite,
             "Seconds without progress after which a worker is replaced"),
      whole("image_size", &O::image_size, 8, 4096, "Side of the pictures photographs are made into"),
      flag("eval_crop", &O::eval_crop, "Judge by the middle of photographs, resized to 8/7 of the size"),
      choice("on_bad_image", &O::on_bad_image,
             Names<OnBadImage>{{"skip", OnBadImage::skip}, {"fail", OnBadImage::fail}},
             "skip or fail, where a photograph cannot be read"),
      whole("max_pixels", &O::max_pixels, 1, many, "Larger photographs are taken for bad ones"),
      flag("scaled_decode", &O::scaled_decode, "Decode JPEGs smaller where that will do: faster, not exact"),
      text("pretrained", &O::pretrained, "PATH",
           "Weights to begin with: a .pth or .safetensors, auto or none", some_text),
      flag("freeze", &O::freeze, "Train the last layer only"),
      flag("freeze_bn", &O::freeze_bn, "Keep the statistics of batch norms"),
      number("mixup", &O::mixup, 0, false, infinite, "Mix each image with its neighbour: Beta's α; 0: off"),
      number("cutmix", &O::cutmix, 0, false, infinite, "Put a box of the neighbour in each image: Beta's α"),
      seed(),
      whole("limit", &O::limit, 0, many, "Train on the first N images; 0: all"),
      whole("validation", &O::validation, 0, many, "Judge epochs on the last N training images"),
      text("device", &O::device, "DEVICE", "auto (the faster one, measured), cpu, cuda or cuda:N",
           known_device),
      choice("precision", &O::precision,
             Names<MatmulPrecision>{{"fp32", MatmulPrecision::fp32},
                                    {"tf32", MatmulPrecision::tf32},
                                    {"bf16", MatmulPrecision::bf16}},
             "fp32, tf32 or bf16, of matrix products on a GPU"),
  };
}

}  // namespace

ScheduleOptions TrainOptions::schedule_options() const {
  return {.kind = schedule,
          .epochs = epochs,
          .warmup_steps = warmup_steps,
          .step_size = step_size,
          .gamma = gamma,
          .min_lr = min_lr};
}

UpdateOptions TrainOptions::update_options() const {
  return {.kind = optimizer, .momentum = momentum, .nesterov = nesterov, .weight_decay = weight_decay};
}

LoaderOptions TrainOptions::loader_options() const {
  LoaderOptions options;
  options.workers = workers == "auto" ? default_worker_count() : std::stoi(workers);
  options.kind = worker_kind;
  options.ahead = static_cast<int>(ahead);
  options.worker_limit_s = worker_limit;
  options.epochs = epochs;
  return options;
}

PhotoRecipe TrainOptions::photo_recipe() const {
  check(augment == "none" || is_photo_recipe(augment),
        "[train] expected a recipe for photographs, such as photo or 'crop, flip 0.5', got '{}'", augment);
  return augment == "none" ? evaluation_recipe() : parse_photo_recipe(augment, static_cast<int>(image_size));
}

PhotoRecipe TrainOptions::evaluation_recipe() const {
  return evaluation_photos(static_cast<int>(image_size), eval_crop);
}

std::span<const TrainField> train_fields() {
  static const std::vector<TrainField> fields = make_fields();
  return fields;
}

const TrainField& train_field(std::string_view key) {
  const auto found = std::ranges::find(train_fields(), key, &TrainField::key);
  expect(found != train_fields().end());
  return *found;
}

TomlValue flag_value(const TrainField& field, const std::string& given) {
  const auto parsed = [&]<class T>(const std::string& part, T value) -> TomlValue {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && end == part.data() + part.size() ? TomlValue(value) : TomlValue(part);
  };
  switch (field.kind) {
    case TrainField::Kind::flag:
      return given == "true" ? TomlValue(true) : given == "false" ? TomlValue(false) : TomlValue(given);
    case TrainField::Kind::whole:
      return parsed(given, std::int64_t{});
    case TrainField::Kind::number:
      return parsed(given, double{});
    case TrainField::Kind::text:
      return given;
    case TrainField::Kind::sizes:
      break;
  }
  TomlList sizes;
  for (std::size_t begin = 0; begin <= given.size();) {
    const std::size_t end = std::min(given.find(',', begin), given.size());
    const TomlValue size = parsed(given.substr(begin, end - begin), std::int64_t{});
    if (!std::holds_alternative<std::int64_t>(size)) return given;
    sizes.emplace_back(std::get<std::int64_t>(size));
    begin = end + 1;
  }
  return sizes;
}

void apply_table(TrainOptions& options, const TomlTable& table) {
  for (const TomlEntry& entry : table.entries) {
    const auto field = std::ranges::find(train_fields(), entry.key, &TrainField::key);
    if (field == train_fields().end()) {
      std::string known;
      for (const TrainField& one : train_fields())
        known += (known.empty() ? "" : ", ") + std::string(one.key);
      fail("[config] {}: unknown key '{}', expected one of {}", table.where(entry), entry.key, known);
    }
    try {
      field->set(options, entry.value);
    } catch (const Error& error) {
      fail("[config] {}: {}: {}", table.where(entry), entry.key, error.what());
    }
  }
}

TomlTable to_table(const TrainOptions& options) {
  TomlTable table;
  for (const TrainField& field : train_fields())
    table.entries.push_back({field.key, field.get(options), static_cast<int>(table.entries.size()) + 1});
  return table;
}

TrainOptions read_config(const std::filesystem::path& path, TrainOptions base) {
  apply_table(base, parse_toml(read_file("config", path, 1 << 20), path.string()));
  return base;
}

TrainOptions default_options(const std::string& model, bool photographs) {
  TrainOptions options;
  options.model = model;
  if (photographs) options.augment = normal_recipe("photo");
  if (model == "mlp") return options;
  const bool small = model == "cnn";
  options.optimizer = OptimizerKind::adam;
  options.learning_rate = 1e-3;
  options.batch_size = small ? 64 : 32;
  options.epochs = small ? 10 : 25;
  return options;
}

TrainOptions plates_options(const std::string& model) {
  TrainOptions options = default_options(model, true);
  options.augment = normal_recipe("crop 0.35 1, flip, jitter 0.4 0.4 0.4 0.1");
  options.image_size = 64;
  options.epochs = 100;
  options.batch_size = 8;
  options.schedule = ScheduleKind::cosine;
  return options;
}

std::string normal_recipe(const std::string& text) {
  if (is_photo_recipe(text)) return to_string(parse_photo_recipe(text, 1));
  return to_string(parse_recipe(text));
}

void apply_preset(TrainOptions& options, const std::string& name) {
  check(name == "best", "expected best, got '{}'", name);
  options.layers = {784, 1000, 1000, 10};
  options.activation = Activation::relu;
  options.dropout = 0.1;
  options.label_smoothing = 0.05;
  options.epochs = 40;
  options.batch_size = 128;
  options.optimizer = OptimizerKind::sgd;
  options.learning_rate = 0.2;
  options.momentum = 0.9;
  options.nesterov = true;
  options.weight_decay = 1e-4;
  options.schedule = ScheduleKind::one_cycle;
  options.augment = "rotate -15 15, shift -2 2, skew -0.2 0.2";
}

void check_options(const TrainOptions& options) {
  check_schedule(options.schedule_options());
  check(options.loss == LossKind::cross_entropy || options.label_smoothing == 0,
        "[train] label smoothing goes with --loss cross-entropy, not with mse");
  check(options.optimizer == OptimizerKind::sgd || (options.momentum == 0 && !options.nesterov),
        "[train] momentum and Nesterov go with --optimizer sgd");
  check(!options.nesterov || options.momentum > 0, "[train] expected --momentum above 0 for --nesterov");
  const bool perceptron = options.model == "mlp";
  check(!perceptron || (!options.freeze && !options.freeze_bn && options.pretrained == "none"),
        "[train] --pretrained, --freeze and --freeze-bn go with --model cnn and resnet, not with mlp");
  check(perceptron || (options.loss == LossKind::cross_entropy && options.dropout == 0),
        "[train] --loss mse and --dropout go with --model mlp, not with {}", options.model);
  check(!perceptron || options.mix_recipe().empty(),
        "[train] --mixup and --cutmix go with --model cnn and resnet, not with mlp");
  check_mix_recipe(options.mix_recipe());
  check(options.pretrained != "auto" || options.model.starts_with("resnet"),
        "[train] expected --pretrained PATH for {}: only for resnets there are weights to fetch",
        options.model);
}

std::vector<std::string> differing_keys(const TrainOptions& now, const TrainOptions& before) {
  std::vector<std::string> keys;
  for (const TrainField& field : train_fields())
    if (const TomlValue a = field.get(now), b = field.get(before); a != b)
      keys.push_back(fmt::format("{} ({}, was {})", field.key, plain_text(a), plain_text(b)));
  return keys;
}

}  // namespace tandem
