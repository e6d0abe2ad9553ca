// An implementation of the training step. All engines train the same model on the same batches with the same
// optimizer; they differ in speed and in rounding. The choice depends on the task only, never on a
// measurement, so that a run can be repeated and resumed bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/augment/mix.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/dist/group.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/optim/lookahead.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/update_rule.h"
#include "tandem/optim/weight_average.h"
#include "tandem/train/image_input.h"

namespace tandem {

// What to train and how. The model, the optimizer and the source are on one device.
struct TrainingTask {
  Module& model;
  Optimizer& optimizer;
  BatchSource& source;
  ScheduleOptions schedule;
  double learning_rate = 0.1;  // base rate of the schedule
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;
  double focal_gamma = 0;            // of LossKind::focal
  Tensor class_weights = {};         // (classes) in f32; undefined: none
  double clip_norm = 0;              // 0: gradients are not clipped
  WeightAverage* average = nullptr;  // updated after every step; null: none
  Lookahead* lookahead = nullptr;    // the same
  MatmulPrecision precision = MatmulPrecision::fp32;
  ImageInput input = {};
  MixRecipe mix = {};
  LossFunction loss_function = {};  // instead of `loss` and its options, if there is one
  bool capture_graphs = true;       // on a GPU
  // Of a batch that is cut into shards: source.plan().part says into how many, and which of them are here.
  ShardNorm batch_norm = ShardNorm::batch;
  std::int64_t accumulate = 1;        // passes that compute the shards, to save memory: the same bits
  Group* group = nullptr;             // the ranks that have the other shards; null: none
  bool exchange_through_cpu = false;  // on a GPU: not by NCCL, and without graphs
  // On the CPU, exactly this number of threads, for measurements of it; 0: the fastest up to thread_count().
  int threads = 0;

  // The mean loss of a batch; labels are i32. With class weights the sum over the rows is divided by
  // `total_weight`.
  Tensor compute_loss(const Tensor& outputs, const Tensor& labels, const Tensor& total_weight = {}) const;
  // Whether a step does something that only ModuleEngine can.
  bool needs_module_engine() const;
  const BatchPlan& batches() const { return source.plan(); }
  std::int64_t shards() const { return batches().part.shards; }
};

// Sums over the samples of the steps that were run.
struct StepSums {
  double loss = 0;  // not finite if that of any step was not
  std::int64_t correct = 0, samples = 0;

  StepSums& operator+=(const StepSums& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
  StepSums operator-(const StepSums& other) const {
    return {loss - other.loss, correct - other.correct, samples - other.samples};
  }
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Runs `count` steps of an epoch from step `first` on, waits for them and adds their sums to `sums`.
  // Dividing an epoch into several calls gives the same bits, in the weights and in sums that are carried
  // from call to call, as long as each call starts at a multiple of stride().
  virtual void add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) = 0;
  // The sums of these steps only.
  StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) {
    StepSums sums;
    add_steps(epoch, first, count, sums);
    return sums;
  }
  virtual std::int64_t stride() const { return 1; }

  // Of several ranks: when a value of this rank was first not finite, as a number that counts up. The rank
  // with the lowest is where it began: what ranks exchange makes the values of all the same.
  virtual std::int64_t first_not_finite() const { return 0; }

  // Copies weights and states to the model and the optimizer: an engine may keep its own copy between runs.
  virtual void store() = 0;

  // For logs: "perceptron on the CPU, 2 threads".
  virtual std::string description() const = 0;

 protected:
  Engine() = default;
};

// The fastest engine for the task.
std::unique_ptr<Engine> make_engine(const TrainingTask& task);

// The hyperparameters of one step, and of `count` steps. The optimizer must be a fused one.
detail::StepHyperparameters<float> hyperparameters_at(const TrainingTask& task, std::int64_t epoch,
                                                      std::int64_t step);
void fill_step_hyperparameters(const TrainingTask& task, std::int64_t epoch, std::int64_t first,
                               std::int64_t count,
                               std::vector<detail::StepHyperparameters<float>>& hyperparameters);

}  // namespace tandem
