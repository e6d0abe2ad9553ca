// The steps of contrastive training: two views of each image through the network, NT-Xent, LARS, and the
// moving average of the weights. On CUDA a step, with the rendering of scenes, is one captured graph.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/device/graph_runner.h"
#include "tandem/device/stream.h"
#include "tandem/optim/lars.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/weight_average.h"
#include "tandem/train/image_input.h"
#include "tandem/train/pretrain/contrastive_model.h"
#include "tandem/train/pretrain/options.h"
#include "tandem/train/pretrain/views.h"

namespace tandem::detail {

// Means over some steps, and figures of the embeddings of the last one.
struct ContrastiveFigures {
  double loss = 0;                // NT-Xent
  double retrieval_accuracy = 0;  // the share of views whose other view is the most similar one of the batch
  double attribute_loss = 0;      // 0 without attributes
  double alignment = 0, uniformity = 0;
};

class Pretrainer {
 public:
  // The options must be resolved. The source must outlive it.
  Pretrainer(const PretrainOptions& options, ViewSource& source);

  // Starts a step; does not wait for the device.
  void step(std::int64_t number);
  double learning_rate(std::int64_t step) const;
  // Waits for the steps so far. The figures are those since the last call.
  ContrastiveFigures take_figures();
  // Waits; the steps since the last take_figures() stay counted.
  void synchronize();

  // Everything that the steps change, for a checkpoint, on the device.
  NamedTensors state() const;
  void load_state(const NamedTensors& state);
  // Whether all of it is finite.
  bool is_finite() const;
  // The averaged weights of the backbone without its last layer.
  NamedTensors averaged_backbone() const;

 private:
  void compute_step();
  NamedTensors sums() const;

  PretrainOptions options_;
  ViewSource& source_;
  ImageInput input_;
  ScheduleOptions schedule_;
  ContrastiveModel model_;
  std::optional<Lars> optimizer_;
  std::optional<WeightAverage> average_;
  Tensor loss_, accuracy_, attribute_loss_;  // f64, summed over steps
  Tensor count_;                             // i64, the steps in the sums
  Tensor embeddings_;                        // of the last step
  std::optional<Stream> stream_;             // CUDA
  std::optional<GraphRunner> runner_;        // CUDA
};

}  // namespace tandem::detail
