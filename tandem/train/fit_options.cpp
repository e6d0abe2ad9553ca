#include "tandem/train/fit_options.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/train/options.h"

namespace tandem {

ScheduleOptions FitOptions::schedule_options() const {
  return {.kind = schedule,
          .epochs = epochs,
          .warmup_steps = warmup_steps,
          .warmup_epochs = warmup_epochs,
          .step_size = step_size,
          .gamma = gamma,
          .min_lr = min_lr,
          .pct_start = pct_start,
          .end_factor = learning_rate > 0 ? min_lr / learning_rate : 0};
}

OptimizerOptions FitOptions::update_options() const {
  return {.momentum = momentum, .nesterov = nesterov, .weight_decay = weight_decay};
}

Transform FitOptions::evaluation_transform() const {
  if (validation_transform) return *validation_transform;
  if (!transform.resizes()) return {};
  PhotoRecipe recipe;
  recipe.height = transform.photo().height;
  recipe.width = transform.photo().width;
  recipe.filter = transform.photo().filter;
  return recipe;
}

void check_fit_options(const FitOptions& options, const char* op) {
  TrainOptions scratch;
  static_cast<FitOptions&>(scratch) = options;
  for (const TrainField& field : train_fields()) {
    if (!field.of_fit) continue;
    try {
      field.set(scratch, field.get(scratch));
    } catch (const Error& error) {
      fail("[{}] {}: {}", op, field.key, error.what());
    }
  }
  check(options.save_every_seconds >= 0, "[{}] expected save_every_seconds of 0 or more, got {}", op,
        options.save_every_seconds);
  check(!options.resume || !options.run_folder.empty(), "[{}] expected the run_folder of the run to resume",
        op);
  check(options.shuffle || options.batches_per_epoch == 0,
        "[{}] expected shuffle epoch with batches_per_epoch, which are random batches, got none", op);
  check(options.shuffle || !options.balanced_sampling,
        "[{}] expected shuffle epoch with balanced_sampling, whose order is random, got none", op);
  check(options.batch_size == 0 || options.shards <= options.batch_size,
        "[{}] expected at most {} shards, one per image of a batch, got {}", op, options.batch_size,
        options.shards);
  check_schedule(options.schedule_options());
  check(options.loss == LossKind::cross_entropy || options.label_smoothing == 0,
        "[{}] label_smoothing requires loss cross-entropy, got {}", op, name_of(options.loss));
  check(options.class_weights.empty() || (options.loss != LossKind::mse && !options.loss_function),
        "[{}] class_weights require loss cross-entropy or focal, got {}", op,
        options.loss_function ? "a loss_function" : name_of(options.loss));
  check(options.loss != LossKind::focal || options.mix_recipe().empty(),
        "[{}] mixup and cutmix require loss cross-entropy, got focal", op);
  check(options.test_views == TestViews::one || !options.loss_function,
        "[{}] test_views require one of Tandem's losses, got a loss_function", op);
  check(!options.calibrate || options.loss != LossKind::mse,
        "[{}] calibrate requires a loss of logits, got mse", op);
  check(!options.fit_head || (options.loss == LossKind::cross_entropy && !options.loss_function),
        "[{}] fit_head requires loss cross-entropy, got another", op);
  if (options.feature_precision != FeaturePrecision::automatic) {
    const Device device = options.device.value_or(cpu_device);
    check(!device.is_cuda(),
          "[{}] feature_precision is for the CPU, got device {}: on a GPU use precision bf16", op,
          device.to_string());
    check(options.unfreeze_at == 0,
          "[{}] feature_precision requires layers that stay frozen, got unfreeze_at {}", op,
          options.unfreeze_at);
  }
  const OptimizerRow& optimizer = optimizers().get(options.optimizer);
  check(optimizer.has_momentum || options.momentum == 0,
        "[{}] expected no momentum with optimizer {}, which has none, got {}", op, optimizer.name,
        options.momentum);
  check(optimizer.has_nesterov || !options.nesterov, "[{}] expected no nesterov with optimizer {}", op,
        optimizer.name);
  check(!options.nesterov || options.momentum > 0, "[{}] expected momentum above 0 with nesterov, got {}", op,
        options.momentum);
  check(options.stage_lr_decay <= 1, "[{}] expected stage_lr_decay of at most 1, got {}", op,
        options.stage_lr_decay);
  check(options.unfreeze_at == 0 || (options.unfreeze_at >= 2 && options.unfreeze_at <= options.epochs),
        "[{}] expected unfreeze_at from 2 to {}, the last epoch, got {}", op, options.epochs,
        options.unfreeze_at);
  check_mix_recipe(options.mix_recipe());
  for (auto metric = options.metrics.begin(); metric != options.metrics.end(); ++metric) {
    check(!metric->name.empty() && metric->compute,
          "[{}] expected metrics with a name and a function, got '{}'", op, metric->name);
    check(std::ranges::count(options.metrics, metric->name, &Metric::name) == 1,
          "[{}] expected metrics with distinct names, got '{}' twice", op, metric->name);
  }
}

}  // namespace tandem
