// The weights with which a training run starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tandem/files/fetch.h"
#include "tandem/train/options.h"

namespace tandem {

// What options.pretrained = "auto" means here.
struct ChosenWeights {
  std::string name;          // imagenet, scenes or none; any other options.pretrained as it is
  std::string problem = {};  // why the ImageNet weights could not be fetched
};

// Fetches the published weights of a model; throws Error.
using WeightsFetcher = std::function<std::filesystem::path(const std::string& model)>;

// Whether options.from is about the pretrained weights: a file of weights, or data that needs no files.
bool gives_weights(const TrainOptions& options);

// How the published weights are fetched: from options.from if that gives them.
FetchOptions weights_fetch_options(const TrainOptions& options,
                                   const std::function<void(const std::string&)>& on_message);

// Whether the model has weights to start from: published ones, or some that ship with Tandem.
bool has_any_weights(const std::string& model);

// For "auto": the ImageNet weights, from the cache or fetched; else those that ship with Tandem; else none.
// Throws Error if options.from should give the ImageNet weights and does not.
ChosenWeights choose_weights(const TrainOptions& options, const WeightsFetcher& fetch);

// The file of the weights that were chosen; empty for none. Throws Error if there is no such file.
std::filesystem::path find_weights(const TrainOptions& options, const WeightsFetcher& fetch);

// "ImageNet", "scenes, which ship with Tandem", "random weights", or the name of the file.
std::string describe_weights(const std::string& pretrained);

// One line for a run whose ImageNet weights could not be fetched; from random weights also what that means
// for this many training images.
std::string fallback_line(const std::string& model, const ChosenWeights& chosen,
                          std::int64_t training_images);

}  // namespace tandem
