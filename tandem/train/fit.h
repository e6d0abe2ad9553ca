// fit(): trains any Module on any Dataset with everything that `tandem train` has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tandem/data/dataset.h"
#include "tandem/nn/module.h"
#include "tandem/report/epoch_record.h"
#include "tandem/report/fold_record.h"
#include "tandem/train/fit_options.h"
#include "tandem/train/progress_state.h"
#include "tandem/train/train_result.h"

namespace tandem {

/// Called while a run goes on, by the thread that called fit(); any of them may be empty. An exception ends
/// the run; files saved before stay valid.
struct FitCallbacks {
  std::function<void(const std::string& line)> on_message;  ///< one line: data, device, run folder, …
  /// After every few steps, after batches of validation images, and while images are rendered: then from any
  /// thread, but never from two at once.
  std::function<void(const ProgressState&)> on_progress;
  std::function<void(const EpochRecord&)> on_epoch;  ///< after an epoch was validated and logged
  std::function<void(const FoldRecord&)> on_fold;    ///< after a fold of a cross-validation
  std::function<int()> stop_signal;      ///< polled between steps; not 0: save and stop (SignalWatch)
  std::function<bool()> save_requested;  ///< polled between steps; true: save and continue
};

/// Trains `model` in place and writes the run folder: config.toml, log.csv, TensorBoard events,
/// best.safetensors, last.ckpt and report.html, as `tandem train` does.
///
/// The model gets batches (n, height, width, channels) in f32, pixels from 0 to 1 or normalized with
/// options.norm, and returns logits (n, classes); for LossKind::mse, sigmoid outputs. Each epoch is validated
/// on `validation`; the epoch with the best accuracy, the first of equal ones, is the best model.
///
/// When fit() returns, the model is on the device that was used, in the mode it had before, without
/// gradients. It holds the weights of the best epoch, and test_accuracy and test_loss of the result are
/// theirs, measured on `validation`; if a signal stopped the run, it holds those of the last step, which are
/// not averaged.
///
/// Without options.device the devices are measured with steps of this model, whose values are then restored
/// bit for bit. A resumed run gives the same bits as one never interrupted, if the data sets, the model and
/// the caller's functions are the same.
///
/// Throws Error for options out of range, data sets or a model that do not fit each other, a run folder that
/// is not empty or in use, a checkpoint of another configuration or of other data, a sample that cannot be
/// read and a loss that is not finite; files saved before stay valid.
TrainResult fit(Module& model, const Dataset& train, const Dataset& validation,
                const FitOptions& options = {}, const FitCallbacks& callbacks = {});

/// Cross-validates, then trains `model` on all of `data` as fit() does, and keeps its last epoch. The images
/// are divided into `folds` parts with the same share of each class; for each, a model with the values that
/// `model` has at the call is trained on the others. The result's folds, test_accuracy and test_loss are of
/// the predictions of these models for the images they did not see; the report has their confusion matrix,
/// predictions.csv each of them. With options.fit_head and one epoch the images are passed through the
/// backbone only once; otherwise each fold is a run in RUN_FOLDER/fold-N. Nothing chooses among the epochs,
/// so early_stopping must be 0. Throws Error as fit() and stratified_folds() do.
TrainResult cross_validate(Module& model, const Dataset& data, std::int64_t folds,
                           const FitOptions& options = {}, const FitCallbacks& callbacks = {});

}  // namespace tandem
