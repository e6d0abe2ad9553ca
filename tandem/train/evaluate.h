// How a model does on a set of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/device/repeated_work.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/image_input.h"

namespace tandem {

struct Evaluation {
  double loss = 0;      // mean
  double accuracy = 0;  // a share of 1; NaN without images
  std::int64_t classes = 0;
  std::vector<std::int32_t> predictions;  // one an image
  std::vector<float> outputs;             // images × classes, what the network says
};

// The model's outputs (images, classes) on the model's device, with nothing recorded. The images may be
// anywhere. The model is in evaluation mode meanwhile, then as it was.
Tensor outputs_of(Module& model, const Tensor& images, const ImageInput& input = {});

Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input = {});

// What a model says of images, on its device still.
struct JudgedImages {
  Tensor outputs, predictions, loss;
};

// Judges a model on one set again and again, with the bits of evaluate(). On CUDA what it computes is
// captured and replayed, on the values the model has by then; it begins anew where they were moved, or where
// matmul_precision() is another. The model must outlive it.
class Evaluator {
 public:
  Evaluator(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input = {});

  Evaluation run();

 private:
  // What a graph takes for granted.
  struct Premises {
    std::vector<const std::byte*> places;  // where the model's values lie
    MatmulPrecision precision;
    friend bool operator==(const Premises&, const Premises&) = default;
  };
  Premises premises() const;

  Module& model_;
  ImageSet set_;  // on the model's device
  LossKind loss_;
  ImageInput input_;
  std::vector<std::int32_t> labels_;
  std::optional<Premises> premises_;
  std::optional<RepeatedWork> work_;
  JudgedImages judged_;
};

// Outputs as probabilities, on the host: softmax for cross-entropy; sigmoid outputs (mse) are divided by
// their sum.
std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss);

}  // namespace tandem
