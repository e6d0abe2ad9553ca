// One training case on one device, and the check that a device computes the right steps: each of its first
// steps is repeated with the unfused operations on the CPU, from the weights the device had before that step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/nn/module.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/study/training_case.h"
#include "tandem/train/engines/engine.h"

namespace tandem {

// How many steps are checked, the first of an epoch.
inline constexpr std::int64_t checked_steps = 3;

// The largest step_error() of a correct device. Sigmoids are smooth, so rounding errors of perceptrons are
// far smaller. ReLU and max pooling switch where two values are equal up to rounding: the gradient then takes
// another path, and the next step starts from other weights. On the CPU alone, changing every initial weight
// of the CNN by its last bit changes the weights after three steps by up to 16 % of what they moved; that is
// why steps are checked one by one. In one step it is at most 0.8 % of the norm, while one sample in 128 that
// is left out changes it by 12 % and more.
double step_tolerance(const TrainingCase& training_case);

// Weights, biases and statistics, tensor by tensor.
using Weights = std::vector<std::vector<float>>;

struct TrainedStep {
  double loss = 0;  // summed over the samples
  Weights before;
  Weights after;
};

// The error of `result`, which started from the same weights: per tensor the Euclidean norm of the difference
// relative to that of the expected change, the maximum over all tensors; or the relative difference of the
// losses if that is larger. A skipped step gives an error of 1 regardless of the size of the weights; a
// non-finite value makes it infinite.
double step_error(const TrainedStep& expected, const TrainedStep& result);

// Random images and labels, as many as Fashion-MNIST has.
ImageSet random_training_images(std::uint64_t seed);

// The network of a case on the device of the images, ready to train.
class CaseTraining {
 public:
  // `best` is the fastest engine; `unfused` runs one operation after the other.
  enum class EngineKind { best, unfused };

  // `threads` as in TrainingTask.
  CaseTraining(const TrainingCase& training_case, const ImageSet& images, std::uint64_t seed,
               EngineKind kind = EngineKind::best, int threads = 0);

  CaseTraining(const CaseTraining&) = delete;
  CaseTraining& operator=(const CaseTraining&) = delete;

  Engine& engine() { return *engine_; }
  const BatchPlan& batches() const { return task_.batches(); }

  // One step of the first epoch.
  TrainedStep run_step(std::int64_t step);
  // The same from other weights. Only for `unfused`, which keeps no copy of the weights.
  TrainedStep run_step(std::int64_t step, const Weights& before);

 private:
  Weights weights() const;

  EngineKind kind_;
  std::unique_ptr<Module> model_;
  FusedOptimizer optimizer_;
  InMemorySource source_;
  TrainingTask task_;
  std::unique_ptr<Engine> engine_;
};

// The maximum step_error() of the checked steps of `training`; `reference` is unfused and on the CPU.
double training_error(CaseTraining& training, CaseTraining& reference);

}  // namespace tandem
