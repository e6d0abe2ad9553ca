// The perceptron on the CPU, trained without the autograd tape: fixed buffers and a fixed sequence of phases,
// run by a team of threads with barriers between them. A step allocates nothing. With other ranks, gradients
// are written to buffers, which one thread sums with those of the other ranks before all threads apply them.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "tandem/core/shard_tree.h"
#include "tandem/core/team.h"
#include "tandem/dist/group.h"
#include "tandem/optim/update_rule.h"
#include "tandem/tensor/tensor.h"
#include "tandem/train/engines/mlp_shape.h"

namespace tandem {

// Pointers to a weight matrix or bias and to its optimizer states (null if the optimizer has none).
struct ParameterState {
  float *value = nullptr, *first = nullptr, *second = nullptr;
};

// The rows of a batch that are here: pointers to the images (rows of bytes), and their labels.
struct MlpBatch {
  std::int64_t rows = 0;
  std::int64_t batch_rows = 0;  // of the whole batch
  const std::uint8_t* const* images = nullptr;
  const std::int32_t* labels = nullptr;
};

// The shards of a batch, whose gradients are summed in a tree (core/shard_tree.h).
struct MlpShards {
  std::int64_t count = 1;
  IndexRange own = {0, 1};
  Group* group = nullptr;  // the ranks that have the others; null: none
};

class CpuMlp {
 public:
  // `max_rows`: of a batch that are here.
  CpuMlp(const MlpShape& shape, std::int64_t max_rows, const OptimizerOptions& rule, double label_smoothing,
         float pixel_scale, int max_threads, const MlpShards& shards = {});

  // Copies weights (out, in) and biases (out) of a layer, in the layout of a state dict.
  void load(std::size_t layer, const ParameterState& weight, const ParameterState& bias);
  void store(std::size_t layer, const ParameterState& weight, const ParameterState& bias) const;

  // All members of a team call these together. load_batch() unpacks the pixels and starts a run of steps;
  // step() also unpacks `next`. With many threads and a small batch, each thread unpacks its own copy, so
  // that no pixel moves between cores; otherwise the threads share one copy.
  void load_batch(const TeamMember& member, const MlpBatch& batch, int parity);
  void step(const TeamMember& member, const MlpBatch& batch, const MlpBatch* next, int parity,
            const detail::StepHyperparameters<float>& hyperparameters);
  // Whether the exchange with the other ranks failed in the last step, which must be the last one then; all
  // members get the same answer. throw_failure() throws what it threw.
  bool failed() const { return failure_ != nullptr; }
  void throw_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  // Sums over the rows of the last step. Losses of shards are order-free (rank_exchange.h).
  double loss_sum() const { return loss_sum_; }
  std::int64_t correct() const { return correct_; }

 private:
  struct Layer {
    std::int64_t in = 0, out = 0;
    Tensor memory;  // holds all of the following
    ParameterState weight, bias;
    float* activation = nullptr;                      // [block][row][16]; logits in the last layer
    float* gradient = nullptr;                        // the same shape, with respect to the pre-activations
    std::int64_t summed_weight = 0, summed_bias = 0;  // where their gradients are in node_sums_
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
  template <class F>
  void for_each_block(const TeamMember& member, std::int64_t rows, const F& f);
  template <std::size_t bytes>
  const float* weight_gradient(const TeamMember& member, const float* input, const MlpBatch& batch,
                               std::size_t index, std::int64_t out_block, std::int64_t in_block) const;
  const float* bias_gradient(const TeamMember& member, const MlpBatch& batch, std::size_t index,
                             std::int64_t out_block) const;
  void exchange(const TeamMember& member, const float* input, const MlpBatch& batch, std::int64_t rows);
  void update(const TeamMember& member, const float* input, const MlpBatch& batch, std::int64_t rows,
              const detail::StepHyperparameters<float>& hyperparameters);
  const float* strip_of(const TeamMember& member, const Layer& layer, std::int64_t input_block) const;
  template <class F>
  const float* sum_rows(const TeamMember& member, const MlpBatch& batch, std::int64_t size, const F& f) const;

  MlpShape shape_;
  OptimizerOptions rule_;
  double label_smoothing_;
  float pixel_scale_;
  std::vector<Layer> layers_;
  bool own_inputs_ = false;     // whether each thread has its own copy of the batch
  std::vector<Tensor> inputs_;  // one per thread, or two that alternate
  Tensor strips_;               // one transposed strip of weights per thread
  std::int64_t strip_floats_ = 0;
  MlpShards shards_;
  std::vector<TreeAddition> additions_;  // that turn the sums of the own shards into those of nodes_
  std::vector<IndexRange> nodes_;        // of the tree, with the own shards
  Tensor shard_sums_;                    // per thread, 16 × 16 sums of every own shard
  std::vector<Tensor> node_sums_;        // with other ranks: all gradients, per node
  std::exception_ptr failure_;
  std::vector<double> row_losses_;
  std::vector<std::int8_t> row_correct_;
  double loss_sum_ = 0;
  std::int64_t correct_ = 0;
};

}  // namespace tandem
