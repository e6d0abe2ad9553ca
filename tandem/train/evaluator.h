// Repeated evaluation of one model on one set, captured as a graph on CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/device/graph_runner.h"
#include "tandem/dist/group.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/evaluate.h"

namespace tandem {

// Of the parameters.
Device device_of(const Module& model);

// Large enough to keep a GPU or all cores busy, small enough for the memory of any device. Results do not
// depend on it.
std::int64_t evaluation_batch_size(const ImageInput& input, Device device);
// How many of `left` images to compute next. On the CPU it is a power of two: the memory pool keeps the
// blocks of every batch size, and those of all powers of two are together twice those of the largest.
std::int64_t next_evaluation_batch(std::int64_t left, const ImageInput& input, Device device);

// The results of an evaluation while they are still on the device.
struct DeviceEvaluation {
  Tensor outputs;
  Tensor predictions;
  Tensor loss;
};

// Nothing in it waits for the device, so that it can be captured.
DeviceEvaluation evaluate_on_device(Module& model, const ImageSet& set, LossKind loss,
                                    const ImageInput& input, const LossFunction& loss_function = {});
Evaluation to_host(const DeviceEvaluation& result, const std::vector<std::int32_t>& labels);

// Gives the same bits as evaluate(). On CUDA the computation is captured and replayed with the model's
// current weights; it is captured again when the weights move in memory or matmul_precision() changes. The
// model must outlive it.
class Evaluator {
 public:
  // A loss_function replaces `loss`. The ranks of `group` share the images, and all get the same evaluation;
  // null: this process alone.
  Evaluator(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input = {},
            const LossFunction& loss_function = {}, bool capture_graphs = true, Group* group = nullptr);

  // Evaluates the model as it is now.
  Evaluation run();

 private:
  // What a captured graph depends on.
  struct GraphKey {
    std::vector<const std::byte*> addresses;  // of the parameters and buffers
    MatmulPrecision precision;
    friend bool operator==(const GraphKey&, const GraphKey&) = default;
  };
  GraphKey graph_key() const;
  Tensor outputs_of_all_ranks();

  Module& model_;
  ImageSet set_;  // on the model's device
  LossKind loss_;
  ImageInput input_;
  LossFunction loss_function_;
  bool capture_graphs_;
  Group* group_;
  std::vector<std::int32_t> labels_;
  std::optional<GraphKey> captured_key_;
  std::optional<GraphRunner> runner_;
  DeviceEvaluation result_;
};

}  // namespace tandem
