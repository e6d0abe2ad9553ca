#include "tandem/train/engine.h"

#include <utility>

#include "tandem/train/mlp_engine.h"
#include "tandem/train/module_engine.h"

namespace tandem {

std::unique_ptr<Engine> make_engine(const TrainingTask& task) {
  auto fast =
      on_backend(task.source.device(), "train", [&]<Backend B>() { return make_mlp_engine<B>(task); });
  return fast ? std::move(fast) : std::make_unique<ModuleEngine>(task);
}

UpdateNumbers<float> numbers_of_step(const TrainingTask& task, std::int64_t epoch, std::int64_t step) {
  const std::int64_t steps = task.batches().steps();
  UpdateOptions options = task.optimizer.options();
  const double momentum = momentum_at(task.schedule, task.optimizer.momentum(), epoch, step, steps);
  if (options.kind != OptimizerKind::sgd)
    options.beta1 = momentum;
  else if (options.momentum != 0)
    options.momentum = momentum;
  return update_numbers<float>(options,
                               learning_rate_at(task.schedule, task.learning_rate, epoch, step, steps),
                               epoch * steps + step + 1);
}

void numbers_of_steps(const TrainingTask& task, std::int64_t epoch, std::int64_t first, std::int64_t count,
                      std::vector<UpdateNumbers<float>>& numbers) {
  numbers.clear();
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(numbers_of_step(task, epoch, first + i));
}

}  // namespace tandem
