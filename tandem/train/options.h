// Everything that defines a training run, and one table of fields from which the program's flags, the
// configuration file and their error texts are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/augment/mix.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/photo_store.h"
#include "tandem/device/device.h"
#include "tandem/files/toml.h"
#include "tandem/nn/loss.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/matmul.h"
#include "tandem/optim/optimizer_options.h"
#include "tandem/optim/schedule.h"

namespace tandem {

struct TrainOptions {
  // a name of datasets(), a folder with the four idx files, or a folder of photographs
  std::string data = "digits";
  std::string from;           // folder or archive with the data set's files, if the cache does not have them
  std::string model = "mlp";  // one of models()
  std::vector<std::int64_t> layers = {784, 200, 10};
  Activation activation = Activation::sigmoid;
  double dropout = 0;
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;

  std::int64_t epochs = 15;
  std::int64_t batch_size = 16;
  std::int64_t batches_per_epoch = 0;  // 0: all of the data
  double learning_rate = 0.5;
  std::string optimizer = "sgd";  // one of optimizers()
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t step_size = 7;
  double gamma = 0.1;
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t early_stopping = 0;  // stop after this many epochs without a better accuracy; 0: never

  std::string augment = "none";     // a recipe for parse_recipe() or, for photographs, parse_photo_recipe()
  std::string augment_on = "auto";  // auto, cpu or gpu; saved as chosen
  std::string workers = "auto";     // auto or a number
  WorkerKind worker_kind = WorkerKind::thread;
  std::int64_t prefetch = 0;   // blocks of images prepared ahead of the steps; 0: twice the workers
  double worker_timeout = 60;  // seconds without progress after which a worker counts as hung

  // Photographs.
  std::int64_t image_size = 224;  // height and width of the network's input
  bool eval_crop = false;         // validation: center crop after resizing to 8/7 of the size
  OnBadImage on_bad_image = OnBadImage::skip;
  std::int64_t max_pixels = PhotoDecodeOptions{}.max_pixels;
  bool scaled_decode = false;

  // Convolutional networks.
  std::string pretrained = "none";  // a file of weights, none, or auto: the published weights, downloaded
  bool freeze = false;              // all but the last layer
  bool freeze_bn = false;           // the running statistics of batch norms
  double mixup = 0, cutmix = 0;     // α of the Beta distribution; 0: off

  std::uint64_t seed = 1;
  std::int64_t limit = 0;       // number of training images, from the first; 0: all
  std::int64_t validation = 0;  // last training images held out for validation; 0: validate on the test set
  std::string device = "auto";  // saved as chosen
  MatmulPrecision precision = MatmulPrecision::fp32;

  ScheduleOptions schedule_options() const;
  OptimizerOptions update_options() const;
  LoaderOptions loader_options() const;
  PhotoRecipe photo_recipe() const;       // for training; throws Error if `augment` is not a photo recipe
  PhotoRecipe evaluation_recipe() const;  // for validation and test
  MixRecipe mix_recipe() const { return {.mixup = mixup, .cutmix = cutmix}; }
  PhotoDecodeOptions photo_decode_options() const {
    return {.max_pixels = max_pixels, .scaled = scaled_decode};
  }
};

// Where and how a run is saved: no effect on what it computes.
struct RunOptions {
  std::filesystem::path folder;  // empty: runs/<data>-<model>-<number>
  bool resume = false;
  double save_every_seconds = 60;  // between checkpoints within an epoch; 0: after every few steps
  std::string command;             // shown in the report and stored in the model file
  std::filesystem::path trace;     // file for a timeline in Chrome's trace format; empty: none
};

// One option: `key = value` in a file, --key VALUE as a flag.
struct TrainField {
  enum class Kind { flag, integer, real, text, sizes };

  const char* key;
  Kind kind;
  const char* value_name;  // "N"
  const char* help;
  std::function<TomlValue(const TrainOptions&)> get;
  std::function<void(TrainOptions&, const TomlValue&)> set;  // throws Error: what was expected
};

std::span<const TrainField> train_fields();
const TrainField& train_field(std::string_view key);

// Parses a flag's text into a value for TrainField::set.
TomlValue parse_field_value(const TrainField& field, const std::string& text);

// Sets the fields that the table contains. Throws "[config] run.toml:3: …" for an unknown key or a bad value.
void apply_table(TrainOptions& options, const TomlTable& table);
TomlTable to_table(const TrainOptions& options);
TrainOptions read_config(const std::filesystem::path& path, TrainOptions base = {});

// The defaults for a model; photographs are augmented.
TrainOptions default_options(const std::string& model, bool photographs);

// The defaults for the built-in plates, trained from random weights: many epochs of small batches, because
// there are few plates, and crops large enough to show the dirt on a plate.
TrainOptions plates_options(const std::string& model);

// A recipe of either kind with all its operations and bounds written out.
std::string normalize_recipe(const std::string& text);

// Applies a preset; "best" is the only one.
void apply_preset(TrainOptions& options, const std::string& name);

// Throws Error for values that cannot be combined.
void check_options(const TrainOptions& options);

// "epochs (5, was 3)" for each key that differs.
std::vector<std::string> differing_keys(const TrainOptions& now, const TrainOptions& before);

}  // namespace tandem
