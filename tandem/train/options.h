// Everything that defines a run of `tandem train`, and one table of fields from which the program's flags,
// the configuration file, their bounds and their error texts are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/registry.h"
#include "tandem/data/photo_store.h"
#include "tandem/files/toml.h"
#include "tandem/ops/activation.h"
#include "tandem/train/fit_options.h"

namespace tandem {

struct TrainOptions : FitOptions {
  // a name of datasets(), a folder with the four idx files, or a folder of photographs
  std::string data = "digits";
  std::string from;           // folder or archive with the data set's files, if the cache does not have them
  std::string model = "mlp";  // one of models()
  std::string with;           // the plugins that the run needs, for messages: comma-separated files
  std::vector<std::int64_t> layers = {784, 200, 10};
  Activation activation = Activation::sigmoid;
  double dropout = 0;
  std::set<std::string> kept_validation;  // a folder that is split here: paths that stay validation images
  std::int64_t limit = 0;                 // number of training images, from the first; 0: all
  // Images held out of the training data to choose the model. None: every 10th; N: the last N; 0: none, and
  // the last epoch is kept. Photographs are always validated on val/ or every 6th.
  std::optional<std::int64_t> validation = {};
  std::int64_t folds = 0;  // of a cross-validation; 0: none

  // Photographs.
  std::int64_t image_size = 224;    // height and width of the network's input
  PhotoFit fit = PhotoFit::resize;  // of validation images
  OnBadImage on_bad_image = OnBadImage::skip;
  std::int64_t max_pixels = PhotoDecodeOptions{}.max_pixels;
  bool scaled_decode = false;
  bool hardware_decode = false;

  // Convolutional networks.
  std::string pretrained = "none";  // imagenet, scenes, none, a file, or auto: the first that is there
  bool keep_head = false;           // the last layer of the pretrained weights, not a new one
  bool freeze = false;              // all but the last layer
  std::int64_t freeze_stages = 0;   // stages that are frozen, from the first; not with `freeze`
  bool freeze_bn = false;           // the running statistics of batch norms

  // For photographs of image_size, training and evaluation. `transform` must resize, or be the identity,
  // which means the transform for evaluation; otherwise throws Error.
  Transform photo_transform() const;
  Transform photo_evaluation_transform() const;
  PhotoDecodeOptions photo_decode_options() const {
    return {.max_pixels = max_pixels, .scaled = scaled_decode, .hardware = hardware_decode};
  }
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
  bool of_fit = false;                                       // a field of FitOptions
};

std::span<const TrainField> train_fields();
const TrainField& train_field(std::string_view key);

// Parses a flag's text into a value for TrainField::set.
TomlValue parse_field_value(const TrainField& field, const std::string& text);

// Sets the fields that the table contains. Throws "[config] run.toml:3: …" for an unknown key or a bad value.
void apply_table(TrainOptions& options, const TomlTable& table);
TomlTable to_table(const TrainOptions& options);
// The fields of FitOptions only, and the name of the model.
TomlTable to_table(const FitOptions& options);
TrainOptions read_config(const std::filesystem::path& path, TrainOptions base = {});

// What the defaults depend on besides the model.
struct DefaultsFor {
  bool photographs = false;
  std::int64_t training_images = 0;  // 0: not known
  bool pretrained = false;           // whether the run starts from pretrained weights
  bool frozen = false;               // whether only the last layer is trained
  bool keeps_head = false;           // whether it starts with the last layer of those weights
  bool fits_head = true;             // whether the loss is one by which the last layer can be fitted
};

// The defaults for a model. Photographs are augmented. Few photographs get small batches, so that an epoch
// has several steps, and a learning rate that falls to 0; from random weights they also get small images,
// many epochs, and crops large enough to show what distinguishes the classes. Pretrained layers are trained
// with a tenth of the learning rate; with few images, of any kind, their batch-norm statistics are frozen.
// Over pretrained weights of a few photographs, the first epoch fits the last layer; it is the only one if
// the other layers are frozen or the photographs are very few.
TrainOptions default_options(const std::string& model, const DefaultsFor& data);

// The folds of a cross-validation where it costs no more than a run without: only the last layer is fitted.
// 10, or 5 with fewer than 20 photographs of a class; 0 with fewer than 10 of `smallest_class`, or if an
// option is set that needs images held out.
std::int64_t default_folds(const TrainOptions& options, std::int64_t smallest_class);

// Settings with a name, for a model.
struct PresetRow {
  std::string name;
  std::string summary;
  void (*set)(TrainOptions& options) = nullptr;
};
const Registry<PresetRow>& presets();

// Applies a preset. Throws Error for an unknown name.
void apply_preset(TrainOptions& options, const std::string& name);

// The options for data that are photographs or not: the transforms with their sizes, and the norm. Throws
// Error if the transform is not one for such data.
TrainOptions resolve_options(TrainOptions options, bool photographs);

// Throws Error for values that cannot be combined.
void check_options(const TrainOptions& options);

// "epochs (5, was 3)" for each key of `now` that differs; keys missing in `before` have their defaults.
std::vector<std::string> differing_keys(const TomlTable& now, const TomlTable& before);
std::vector<std::string> differing_keys(const TrainOptions& now, const TrainOptions& before);

}  // namespace tandem
