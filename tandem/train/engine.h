// One way of running training steps. All engines train the same model on the same batches by the same rule;
// they differ in speed and, by rounding, in the last bits. Which one is used depends on the task alone, never
// on a measurement, so that a run can be repeated and resumed bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/augment/mix.h"
#include "tandem/data/batch_source.h"
#include "tandem/nn/loss.h"
#include "tandem/nn/module.h"
#include "tandem/ops/matmul.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/image_input.h"

namespace tandem {

// What is trained and how. The model, the optimiser and the source are on one device.
struct TrainingTask {
  Module& model;
  Optimizer& optimizer;
  BatchSource& source;
  ScheduleOptions schedule;
  double learning_rate = 0.1;  // what the schedule starts from
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;
  MatmulPrecision precision = MatmulPrecision::fp32;
  ImageInput input = {};
  MixRecipe mix = {};

  const BatchPlan& batches() const { return source.plan(); }
};

// Over the samples of the steps that were run.
struct StepSums {
  double loss = 0;  // not finite when a step's was not
  std::int64_t correct = 0, samples = 0;

  StepSums& operator+=(const StepSums& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Runs `count` steps of an epoch from step `first` on. Waits until they are done. How an epoch is cut into
  // calls does not change a bit, as long as the cuts are multiples of stride().
  virtual StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) = 0;
  virtual std::int64_t stride() const { return 1; }

  // Brings the model and the optimiser up to date: the engine may hold weights in a form of its own.
  virtual void store() = 0;

  // In words, for logs: "perceptron on the CPU, 2 threads".
  virtual std::string description() const = 0;

 protected:
  Engine() = default;
};

// The best engine for the task.
std::unique_ptr<Engine> make_engine(const TrainingTask& task);

// The learning rate and momentum of a step, for its update; and of `count` steps, put into `numbers`.
UpdateNumbers<float> numbers_of_step(const TrainingTask& task, std::int64_t epoch, std::int64_t step);
void numbers_of_steps(const TrainingTask& task, std::int64_t epoch, std::int64_t first, std::int64_t count,
                      std::vector<UpdateNumbers<float>>& numbers);

}  // namespace tandem
