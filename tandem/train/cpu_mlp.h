// The perceptron on the CPU, trained without the tape: a fixed set of buffers, a fixed sequence of phases, a
// team of threads that meets between them. A step allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/team.h"
#include "tandem/nn/loss.h"
#include "tandem/ops/activation.h"
#include "tandem/optim/update_rule.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct MlpShape {
  std::vector<std::int64_t> sizes;  // from the inputs to the classes
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;

  std::size_t layers() const { return sizes.size() - 1; }
};

// Memory of one weight matrix (or bias) and of what the optimiser keeps for it.
struct TrainedValues {
  float *value = nullptr, *first = nullptr, *second = nullptr;
};

// One batch: its images, one after the other, as rows of bytes, and their labels.
struct MlpBatch {
  std::int64_t rows = 0;
  const std::uint8_t* const* images = nullptr;
  const std::int32_t* labels = nullptr;
};

class CpuMlp {
 public:
  CpuMlp(const MlpShape& shape, std::int64_t batch_size, const UpdateOptions& rule, double label_smoothing,
         float pixel_scale, int most_threads);

  // Weights (out, in) and biases (out) of a layer, in a state dict's layout.
  void load(std::size_t layer, const TrainedValues& weight, const TrainedValues& bias);
  void store(std::size_t layer, const TrainedValues& weight, const TrainedValues& bias) const;

  // The phases of a step, each called by every member of a team at once. Where there are many threads,
  // each takes in a small batch for itself, so that no pixel travels between cores; otherwise they share it,
  // and the next step's is taken in while this one's weights are updated. take_in() begins a run of steps.
  void take_in(const TeamMember& member, const MlpBatch& batch, int parity);
  void step(const TeamMember& member, const MlpBatch& batch, const MlpBatch* next, int parity,
            const UpdateNumbers<float>& numbers);

  // Of the step just done, over its rows.
  double loss_sum() const { return loss_sum_; }
  std::int64_t correct() const { return correct_; }

 private:
  struct Layer {
    std::int64_t in = 0, out = 0;
    Tensor memory;  // all of the below
    TrainedValues weight, bias;
    float* activation = nullptr;  // [block][row][16], after the activation; logits in the last layer
    float* gradient = nullptr;    // the same, of the sums before the activation
  };

  float* input_of(const TeamMember& member, int parity) const {
    return inputs_[static_cast<std::size_t>(own_inputs_ ? member.index : parity)].data<float>();
  }
  template <class F>
  void for_each_weight(const Layer& layer, F&& f) const;
  void forward(const TeamMember& member, std::size_t index, const float* in, std::int64_t rows);
  void finish(const TeamMember& member, const float* in, const MlpBatch& batch, std::int64_t rows);
  void row_gradient(std::int64_t row, std::int64_t rows, const MlpBatch& batch);
  void backward(const TeamMember& member, std::size_t index, std::int64_t rows);
  void update(const TeamMember& member, const float* in, const MlpBatch& batch, std::int64_t rows,
              const UpdateNumbers<float>& numbers);
  const float* strip_of(const TeamMember& member, const Layer& layer, std::int64_t input_block) const;

  MlpShape shape_;
  UpdateOptions rule_;
  double label_smoothing_;
  float pixel_scale_;
  std::vector<Layer> layers_;
  bool own_inputs_ = false;     // a copy of the batch for each thread
  std::vector<Tensor> inputs_;  // one a thread, or two that take turns
  Tensor strips_;               // a transposed strip of weights for each thread
  std::int64_t strip_floats_ = 0;
  std::vector<double> row_losses_;
  std::vector<std::int8_t> row_correct_;
  double loss_sum_ = 0;
  std::int64_t correct_ = 0;
};

}  // namespace tandem
