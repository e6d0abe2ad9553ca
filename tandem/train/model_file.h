// The file a trained model is shipped in: a safetensors file whose metadata hold what is needed to use the
// weights, so that other tools can read it and Tandem needs nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/ops/activation.h"

namespace tandem {

// What a network is made from.
struct Architecture {
  std::string model = "mlp";
  std::vector<std::int64_t> layers;
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;  // mse: the outputs are sigmoids
  double dropout = 0;

  std::string to_string() const;  // "mlp 784,200,10 sigmoid"
};

std::unique_ptr<Module> make_model(const Architecture& architecture, std::uint64_t seed);

struct ModelInfo {
  Architecture architecture;
  std::vector<std::string> classes;
  std::int64_t height = 0, width = 0, channels = 0;
  float pixel_scale = 1.0f / 255.0f;
  std::string data;     // it was trained on
  std::string command;  // that made it
  std::int64_t epoch = 0;
  double accuracy = 0;  // a share of 1, on what judged the epochs
};

struct Model {
  ModelInfo info;
  std::unique_ptr<Module> module;  // on the CPU
};

// Atomic.
void save_model(const std::filesystem::path& path, const Module& module, const ModelInfo& info);
// A damaged file, one without Tandem's metadata, or weights that do not fit the architecture it names are
// Errors; the last says which names and shapes differ.
Model load_model(const std::filesystem::path& path);

}  // namespace tandem
