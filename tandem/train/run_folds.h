// Runs with cross-validation: one per fold, and one on all images, whose model is kept.
#pragma once

#include <cstdint>

#include "tandem/nn/module.h"
#include "tandem/train/fit.h"
#include "tandem/train/run_setup.h"

namespace tandem {

// Makes the training images of setup.data the validation and test images too, transformed for evaluation,
// leaves out photographs that cannot be read, and divides the others into folds by the seed. Throws Error as
// stratified_folds() does.
void add_folds(RunSetup& setup, const Transform& evaluation, std::int64_t folds, std::uint64_t seed);

// Trains with the folds of add_folds(). If only the last layer is fitted, they share the features of one run;
// otherwise each fold is a run in RUN_FOLDER/fold-N, from the model's values at the start, and measured after
// its last epoch: its images choose nothing. A resumed run skips the folds that are finished. Throws Error as
// the runs do, and for steps in a run to resume whose folds have fitted the last layer only.
TrainResult run_folds(RunSetup setup, Module& model, const FitCallbacks& callbacks);

}  // namespace tandem
