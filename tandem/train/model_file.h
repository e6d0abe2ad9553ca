// The file of a trained model: safetensors, whose metadata hold everything needed to use the weights. Other
// tools can read it, and Tandem needs no other file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/nn/model_registry.h"
#include "tandem/nn/module.h"
#include "tandem/train/decision.h"
#include "tandem/train/image_input.h"

namespace tandem {

class PendingFile;  // core/write_file.h

// How a model in 8-bit integers was made, and what it cost.
struct QuantizationInfo {
  std::string method;                   // of the ranges: max, percentile or entropy
  std::int64_t calibration_images = 0;  // of the training set
  std::int64_t test_images = 0;         // of which the rest tells
  double accuracy_before = 0;           // from 0 to 1, in fp32
  double accuracy_after = 0;            // in 8-bit integers
  double same_class = 0;                // the share of images with the same prediction
  std::string data;
  std::string command;
};

struct ModelInfo {
  Architecture architecture;
  std::vector<std::string> classes;
  std::int64_t height = 0, width = 0, channels = 0;
  float pixel_scale = 1.0f / 255.0f;  // mlp
  PixelNorm norm = {};                // other models
  std::string transform;              // recipe from photograph to input; empty: not a model of photographs
  std::string data;                   // the training data
  std::string command;                // the command that trained it
  std::int64_t epoch = 0;             // whose weights these are
  double accuracy = 0;                // on the validation set, from 0 to 1
  Decision decision = {};             // temperature and threshold
  std::optional<QuantizationInfo> quantization = {};  // of a model in 8-bit integers

  ImageInput input() const;
  bool expects_photos() const { return !transform.empty(); }
  PhotoRecipe photo_recipe() const;
};

struct Model {
  ModelInfo info;
  std::unique_ptr<Module> module;  // on the CPU when loaded
};

// Atomic: on failure an existing file stays unchanged.
void save_model(const std::filesystem::path& path, const Module& module, const ModelInfo& info);
void save_model(const std::filesystem::path& path, const NamedTensors& weights, const ModelInfo& info);
// The weights of a model file, with the module's own step counters of dropout and stochastic depth, which
// model files do not have, so that other programs find the names they know; checkpoints have them.
NamedTensors with_step_counters(NamedTensors weights, const Module& module);
// save_model() in two steps (core/write_file.h).
PendingFile start_model(const std::filesystem::path& path, const NamedTensors& weights,
                        const ModelInfo& info);
// What the file states beside the weights, by key.
std::map<std::string, std::string> model_metadata(const ModelInfo& info);

// Reads a model file, a checkpoint of a run, or the best model of a run folder (its last checkpoint if it
// has none). A model in 8-bit integers is one that computes in them. Throws Error for weights that are not
// finite, a damaged file, one without Tandem's metadata or of a model that is not in models(), or weights
// that do not match the stated architecture; the text then names the tensors and shapes that differ.
Model load_model(const std::filesystem::path& path);

// Loads the weights of a file into a module of the caller, on its device, and puts it into evaluation mode.
// The file may name any model. Throws Error if they are not the weights of the module; nothing is changed
// then.
ModelInfo load_model_into(Module& module, const std::filesystem::path& path);

}  // namespace tandem
