// Model files with random weights, one per kind of network, for tests of predictions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/model_file.h"

namespace tandem {

// Photographs of 32×32 for convolutional networks; "mlp" and "lenet": gray images of 28×28.
inline ModelInfo random_model_info(const std::string& model) {
  const bool gray = model == "mlp" || model == "lenet";
  ModelInfo info{.architecture = {.model = model, .channels = gray ? 1 : 3, .classes = 3},
                 .classes = {"a", "a longer name than fits into a short string", "c"},
                 .height = gray ? 28 : 32,
                 .width = gray ? 28 : 32,
                 .channels = gray ? 1 : 3,
                 .transform = gray ? "" : "center 36"};
  if (model == "mlp") info.architecture.layers = {784, 16, 3};
  if (!gray) info.norm = imagenet_norm;
  return info;
}

inline void save_random_model(const std::filesystem::path& path, const std::string& model,
                              std::uint64_t seed = 3) {
  const ModelInfo info = random_model_info(model);
  const auto module = make_model(info.architecture, seed);
  // Mobile networks with random weights, never trained, give outputs near 0 whatever the pixels.
  const NoGrad no_grad;
  for (NamedTensor& each : module->parameters())
    if (model.find("net_") != model.npos && each.tensor.rank() == 2 && each.tensor.size(0) == 3)
      each.tensor *= model == "efficientnet_b0" ? 2e7 : 1e6;
  save_model(path, *module, info);
}

inline Image noise_image(std::int64_t height, std::int64_t width, int channels, std::uint32_t state) {
  Image image = make_image(height, width, channels);
  for (std::uint8_t& pixel : image.pixels) {
    state = state * 1664525u + 1013904223u;
    pixel = static_cast<std::uint8_t>(state >> 24);
  }
  return image;
}

}  // namespace tandem
