// The weights with which a training run starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tandem/files/fetch.h"
#include "tandem/train/options.h"

namespace tandem {

struct StartingWeights {
  std::filesystem::path file = {};  // empty: random weights
  std::string problem = {};         // why the published weights could not be fetched
};

// Fetches the published weights of a model; throws Error.
using WeightsFetcher = std::function<std::filesystem::path(const std::string& model)>;

// Whether options.from is about the pretrained weights: a file of weights, or data that needs no files.
bool gives_weights(const TrainOptions& options);

// How the published weights are fetched: from options.from if that gives them.
FetchOptions weights_fetch_options(const TrainOptions& options,
                                   const std::function<void(const std::string&)>& on_message);

// The file that options.pretrained names. For "auto" the published weights, from the cache or fetched; if
// they cannot be, random weights and the problem. Throws Error if options.from should give them and does not.
StartingWeights find_starting_weights(const TrainOptions& options, const WeightsFetcher& fetch);

// One line for a run that starts from random weights because the published ones could not be fetched, and
// what that means for this many training images.
std::string random_weights_line(const std::string& model, std::int64_t training_images);

}  // namespace tandem
