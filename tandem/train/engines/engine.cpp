#include "tandem/train/engines/engine.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/cast.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/engines/mlp_engine.h"
#include "tandem/train/engines/module_engine.h"

namespace tandem {

Tensor TrainingTask::compute_loss(const Tensor& outputs, const Tensor& labels,
                                  const Tensor& total_weight) const {
  if (!loss_function)
    return tandem::compute_loss(loss, outputs, labels,
                                {.label_smoothing = label_smoothing,
                                 .class_weights = class_weights,
                                 .focal_gamma = focal_gamma,
                                 .total_weight = total_weight});
  const Tensor value = loss_function(outputs, cast(labels, DType::i64));
  check(value.defined() && value.numel() == 1 && is_floating(value.dtype()),
        "[fit] expected a loss_function that returns a scalar, got {}",
        value.defined() ? value.shape().to_string() : "an undefined tensor");
  return value.rank() == 0 ? value : value.reshape({});
}

bool TrainingTask::needs_module_engine() const {
  const bool sharded_gpu = shards() > 1 && source.device().is_cuda();
  const FusedOptimizer* const fused = optimizer.fused();
  if (fused && !fused->rate_factors().empty()) return true;
  return loss_function || loss == LossKind::focal || class_weights.defined() || clip_norm > 0 || average ||
         lookahead || sharded_gpu;
}

std::unique_ptr<Engine> make_engine(const TrainingTask& task) {
  if (task.needs_module_engine()) return std::make_unique<ModuleEngine>(task);
  auto fast =
      on_backend(task.source.device(), "train", [&]<Backend B>() { return make_mlp_engine<B>(task); });
  return fast ? std::move(fast) : std::make_unique<ModuleEngine>(task);
}

detail::StepHyperparameters<float> hyperparameters_at(const TrainingTask& task, std::int64_t epoch,
                                                      std::int64_t step) {
  const std::int64_t steps = task.batches().steps();
  FusedOptimizer* const optimizer = task.optimizer.fused();
  expect(optimizer != nullptr);
  OptimizerOptions options = optimizer->options();
  const double momentum = momentum_at(task.schedule, optimizer->momentum(), epoch, step, steps);
  if (options.kind != OptimizerKind::sgd)
    options.beta1 = momentum;
  else if (options.momentum != 0)
    options.momentum = momentum;
  return detail::step_hyperparameters<float>(
      options, learning_rate_at(task.schedule, task.learning_rate, epoch, step, steps),
      epoch * steps + step + 1);
}

void fill_step_hyperparameters(const TrainingTask& task, std::int64_t epoch, std::int64_t first,
                               std::int64_t count,
                               std::vector<detail::StepHyperparameters<float>>& hyperparameters) {
  hyperparameters.clear();
  for (std::int64_t i = 0; i < count; ++i)
    hyperparameters.push_back(hyperparameters_at(task, epoch, first + i));
}

}  // namespace tandem
