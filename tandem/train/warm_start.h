// Initializes CUDA and its libraries in the background, while the data are loaded.
#pragma once

#include <future>

#include "tandem/train/fit_options.h"

namespace tandem {

// Starts a thread that initializes the GPU of the options, or the one that `auto` will measure: driver,
// context, and the libraries that the model needs. The future is not valid if there is nothing to initialize.
// Wait for it before using the device. An error, which get() would throw, will occur again on first use.
// A model that convolves needs cuDNN.
std::future<void> start_warm_up(const FitOptions& options, bool convolves);

}  // namespace tandem
