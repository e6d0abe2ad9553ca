// Everything that defines a training run, with one table of fields from which the flags of the program, the
// configuration file and their errors are made.
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
#include "tandem/data/loader.h"
#include "tandem/data/photo_store.h"
#include "tandem/device/device.h"
#include "tandem/files/toml.h"
#include "tandem/nn/loss.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/matmul.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/schedule.h"

namespace tandem {

struct TrainOptions {
  // digits, mnist, fashion-mnist, plates, a folder with the four idx files, or one of photographs
  std::string data = "digits";
  std::string from;           // where to take the data set's files from, when it is not in the cache
  std::string model = "mlp";  // of model_names()
  std::vector<std::int64_t> layers = {784, 200, 10};
  Activation activation = Activation::sigmoid;
  double dropout = 0;
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;

  std::int64_t epochs = 15;
  std::int64_t batch_size = 16;
  std::int64_t batches_per_epoch = 0;  // 0: all of the data
  double learning_rate = 0.5;
  OptimizerKind optimizer = OptimizerKind::sgd;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t step_size = 7;
  double gamma = 0.1;
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t early_stopping = 0;  // epochs without a better accuracy; 0: never

  std::string augment = "none";     // what parse_recipe() or, for photographs, parse_photo_recipe() reads
  std::string augment_on = "auto";  // cpu, gpu; saved as what was chosen
  std::string workers = "auto";     // or their number
  WorkerKind worker_kind = WorkerKind::thread;
  std::int64_t ahead = 0;    // blocks of images filled ahead of the steps; 0: twice the workers
  double worker_limit = 60;  // seconds without progress after which a worker is taken to hang

  // Of photographs.
  std::int64_t image_size = 224;  // the network's
  bool eval_crop = false;         // to judge, the middle of a picture of 8/7 of the size, not all of it
  OnBadImage on_bad_image = OnBadImage::skip;
  std::int64_t max_pixels = PhotoReading{}.max_pixels;
  bool scaled_decode = false;

  // Of networks with convolutions.
  std::string pretrained = "none";  // a file of weights, or auto: those that `tandem fetch MODEL` brings
  bool freeze = false;              // all but the last layer
  bool freeze_bn = false;           // the statistics of batch norms
  double mixup = 0, cutmix = 0;     // α; 0: off

  std::uint64_t seed = 1;
  std::int64_t limit = 0;       // train on the first so many images; 0: all
  std::int64_t validation = 0;  // so many of the last training images judge the epochs; 0: the test set does
  std::string device = "auto";  // saved as the device that was chosen
  MatmulPrecision precision = MatmulPrecision::fp32;

  ScheduleOptions schedule_options() const;
  UpdateOptions update_options() const;
  LoaderOptions loader_options() const;
  PhotoRecipe photo_recipe() const;  // of training; an Error where `augment` is no recipe for photographs
  PhotoRecipe evaluation_recipe() const;  // of what judges
  MixRecipe mix_recipe() const { return {.mixup = mixup, .cutmix = cutmix}; }
  PhotoReading photo_reading() const { return {.max_pixels = max_pixels, .scaled = scaled_decode}; }
};

// Where a run is kept and how: not part of what it computes.
struct RunOptions {
  std::filesystem::path folder;  // empty: runs/<data>-<model>-<number>
  bool resume = false;
  double save_every_seconds = 60;  // in the middle of an epoch; 0: after every few steps
  std::string command;             // for the report and the model file
  std::filesystem::path trace;     // a timeline in Chrome's trace format; empty: none
};

// One thing that can be set: `key = value` in a file, --key VALUE as a flag.
struct TrainField {
  enum class Kind { flag, whole, number, text, sizes };

  const char* key;
  Kind kind;
  const char* value_name;  // "N"
  const char* help;
  std::function<TomlValue(const TrainOptions&)> get;
  std::function<void(TrainOptions&, const TomlValue&)> set;  // an Error says what was expected
};

std::span<const TrainField> train_fields();
const TrainField& train_field(std::string_view key);

// The value of a flag's text, for TrainField::set.
TomlValue flag_value(const TrainField& field, const std::string& text);

// Sets the fields the table names. An unknown key or a wrong value: "[config] run.toml:3: …".
void apply_table(TrainOptions& options, const TomlTable& table);
TomlTable to_table(const TrainOptions& options);
TrainOptions read_config(const std::filesystem::path& path, TrainOptions base = {});

// What a run of that model begins with; photographs are augmented. Anything that is set wins over it.
TrainOptions default_options(const std::string& model, bool photographs);

// The same for the built-in plates, from random weights: they are few, so that epochs are many and batches
// small, and crops keep enough of a plate to show its dirt.
TrainOptions plates_options(const std::string& model);

// A recipe of either kind with its operations and bounds spelled out.
std::string normal_recipe(const std::string& text);

// Sets what a preset says; "best" is the only one.
void apply_preset(TrainOptions& options, const std::string& name);

// Error for values that do not go together.
void check_options(const TrainOptions& options);

// "epochs (5, was 3)" for each key that differs.
std::vector<std::string> differing_keys(const TrainOptions& now, const TrainOptions& before);

}  // namespace tandem
