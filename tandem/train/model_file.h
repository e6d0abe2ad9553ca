// The file a trained model is shipped in: a safetensors file whose metadata hold what is needed to use the
// weights, so that other tools can read it and Tandem needs nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/augment/photo_recipe.h"
#include "tandem/core/write_file.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/ops/activation.h"
#include "tandem/train/image_input.h"

namespace tandem {

// What a network is made from.
struct Architecture {
  std::string model = "mlp";
  std::vector<std::int64_t> layers;        // of a perceptron
  std::int64_t channels = 0, classes = 0;  // of the others: of their images, and what they tell apart
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;  // mse: the outputs are sigmoids
  double dropout = 0;

  bool takes_rows() const { return model == "mlp"; }
  std::string to_string() const;  // "mlp 784,200,10 sigmoid", "resnet18 with 2 classes"
};

// The networks there are: mlp, cnn, resnet18, resnet34, resnet50.
std::span<const std::string_view> model_names();

std::unique_ptr<Module> make_model(const Architecture& architecture, std::uint64_t seed);

struct ModelInfo {
  Architecture architecture;
  std::vector<std::string> classes;
  std::int64_t height = 0, width = 0, channels = 0;
  float pixel_scale = 1.0f / 255.0f;  // of a perceptron
  PixelNorm norm = {};                // of the others
  std::string transform;              // of photographs: the recipe that makes one an input; empty: of none
  std::string data;                   // it was trained on
  std::string command;                // that made it
  std::int64_t epoch = 0;
  double accuracy = 0;  // a share of 1, on what judged the epochs

  ImageInput input() const;
  bool takes_photos() const { return !transform.empty(); }
  PhotoRecipe photo_recipe() const;
};

struct Model {
  ModelInfo info;
  std::unique_ptr<Module> module;  // on the CPU
};

// Atomic.
void save_model(const std::filesystem::path& path, const Module& module, const ModelInfo& info);
void save_model(const std::filesystem::path& path, const NamedTensors& weights, const ModelInfo& info);
// The same in two steps (core/write_file.h).
PendingFile start_model(const std::filesystem::path& path, const NamedTensors& weights,
                        const ModelInfo& info);
// A damaged file, one without Tandem's metadata, or weights that do not fit the architecture it names are
// Errors; the last says which names and shapes differ.
Model load_model(const std::filesystem::path& path);

}  // namespace tandem
