// CUDA and its libraries take longer to start than small data to load: they are started meanwhile.
#pragma once

#include <future>

#include "tandem/train/options.h"

namespace tandem {

// Begins to wake the GPU that the options name, or that `auto` will measure, in a thread of its own: driver
// and context, and the libraries that the model needs. Not valid where there is nothing to wake. Wait for it
// before the device is used; an error, which get() would throw, is met again by who uses the device.
std::future<void> begin_to_wake(const TrainOptions& options);

}  // namespace tandem
