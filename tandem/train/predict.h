// Class predictions for unlabeled images.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/data/photo_store.h"
#include "tandem/train/model_file.h"
#include "tandem/train/prediction.h"

namespace tandem {

/// Options of predict_file() and predict_paths().
struct PredictOptions {
  bool invert = false;             ///< dark on light becomes light on dark; not for models of photographs
  int views = 1;                   ///< whose probabilities are averaged (views.h)
  PhotoDecodeOptions decode = {};  ///< how photographs are decoded
  /// Called after every few files, if set.
  std::function<void(std::size_t done, std::size_t files)> on_progress = {};
};

/// Predicts one file. An image file gives one prediction: it is transformed as the model file says, or
/// converted to gray if the model expects that and resized to the model's size by area. An idx file of images
/// (raw or gzip) of the model's size gives one prediction per image. Runs on the model's device. Throws Error
/// if the file cannot be read or does not fit the model. Not safe to call concurrently on one model.
std::vector<Prediction> predict_file(Model& model, const std::filesystem::path& path,
                                     const PredictOptions& options = {});

/// Predicts files and all images in folders (list_images()), in their order. Models of photographs apply
/// their own transform and decode batches in parallel; other models treat each file as predict_file() does. A
/// file that cannot be read gives a Prediction with an error, and so do files of unknown type in a folder,
/// which come last. Throws Error for options that do not fit the
/// model.
std::vector<Prediction> predict_paths(Model& model, const std::vector<std::string>& paths,
                                      const PredictOptions& options = {});

/// The number of predictions with an error.
std::size_t error_count(const std::vector<Prediction>& predictions);
/// The files without a prediction, and why.
std::vector<SkippedSample> unread_files(const std::vector<Prediction>& predictions);

/// CSV with the columns path,class,probability,<one column per class> and, if any row has an error, a last
/// column "error".
std::string predictions_csv(const std::vector<Prediction>& predictions,
                            const std::vector<std::string>& classes);
/// CSV with the columns id,label: the file's name without its ending, and the predicted class, which is empty
/// for a file that could not be read.
std::string id_label_csv(const std::vector<Prediction>& predictions, const std::vector<std::string>& classes);
/// A JSON list of {"path", "class", "probability", "probabilities": {class: value}} or {"path", "error"}.
std::string predictions_json(const std::vector<Prediction>& predictions,
                             const std::vector<std::string>& classes);

}  // namespace tandem
