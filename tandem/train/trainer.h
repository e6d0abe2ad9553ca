// `tandem train`: names of data and models in, one run out.
#pragma once

#include "tandem/dist/group.h"
#include "tandem/train/fit.h"
#include "tandem/train/options.h"

namespace tandem {

// Trains and writes the run folder: config.toml, log.csv, TensorBoard events, best.safetensors, last.ckpt,
// report.html, and bad-images.csv if photographs could not be read. The test accuracy is that of the best
// model if images were held out for validation, and for photographs; otherwise the test set is also the
// validation set, and the test accuracy is that of the last epoch. A resumed run gives the same bits as one
// never interrupted. A trace is written when the run ends or is stopped by a signal. Throws Error; files
// saved before stay valid.
TrainResult train(const TrainOptions& options, const FitCallbacks& callbacks = {});

// The same as one rank of a group. All ranks call it with the same options; the first one alone reads and
// writes the run folder and calls the callbacks, except those that ask for signals.
TrainResult train(const TrainOptions& options, Group& group, const FitCallbacks& callbacks = {});

}  // namespace tandem
