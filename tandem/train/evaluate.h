// Evaluates a model on a labeled set of images.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/nn/loss.h"
#include "tandem/train/image_input.h"

namespace tandem {

/// The result of evaluate(), on the host.
struct Evaluation {
  double loss = 0;                        ///< mean over the images; NaN without images
  double accuracy = 0;                    ///< from 0 to 1; NaN without images
  std::int64_t classes = 0;               ///< number of classes
  std::vector<std::int32_t> predictions;  ///< one class index per image
  std::vector<float> outputs;             ///< images × classes, row-major: the network's raw outputs
};

/// While it exists, compute_outputs(), compute_features() and evaluate() call `on_batch` after every batch
/// but the last, if they run on the thread that made it. An inner one replaces an outer one.
class EvaluationObserver {
 public:
  using OnBatch = std::function<void(std::int64_t done, std::int64_t images)>;
  explicit EvaluationObserver(OnBatch on_batch);
  ~EvaluationObserver();
  EvaluationObserver(const EvaluationObserver&) = delete;
  EvaluationObserver& operator=(const EvaluationObserver&) = delete;

 private:
  OnBatch on_batch_;
  const OnBatch* previous_;
};

/// Returns the model's outputs, shape (images, classes), on the model's device. The images may be on any
/// device and are processed in batches, in bf16 if that is this thread's matmul_precision(). Runs in
/// evaluation mode without recording gradients; the model's mode is restored afterwards. Not safe to call
/// concurrently on one model.
Tensor compute_outputs(Module& model, const Tensor& images, const ImageInput& input = {});

/// The same for the features of a model with a backbone: (images, feature_count()).
Tensor compute_features(BackboneModel& model, const Tensor& images, const ImageInput& input);

/// Computes loss, accuracy and predictions of the model on a labeled set, on the model's device.
Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input = {});

/// Converts outputs (rows × classes, on the host) to probabilities: softmax of logits; sigmoid outputs
/// (mse) are divided by their sum.
std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss);
/// The same for a tensor (rows, classes), on its device.
Tensor probabilities(const Tensor& outputs, LossKind loss);

}  // namespace tandem
