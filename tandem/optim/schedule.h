// Learning rates as pure functions of where the run is: nothing to save, nothing to step. The formulas are
// PyTorch's StepLR, CosineAnnealingLR (both once an epoch) and OneCycleLR (every step).
#pragma once

#include <cstdint>

namespace tandem {

enum class ScheduleKind { constant, step, cosine, one_cycle };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t epochs = 1;        // the run's length: the period of cosine and one-cycle
  std::int64_t warmup_steps = 0;  // in front of any kind: step t < N has (t + 1) / N of its rate

  std::int64_t step_size = 7;  // step: epochs between two reductions
  double gamma = 0.1;          // step: by this factor

  double min_lr = 0;  // cosine: what it comes down to

  double start_share = 0.3;       // one-cycle: the part of the run that rises
  double div_factor = 25;         // it begins at base / div_factor
  double final_div_factor = 1e4;  // and ends at the beginning / final_div_factor
  double low_momentum = 0.85, high_momentum = 0.95;
};

// Error for options that make no sense: counts below 1, factors that are not positive and finite.
void check_schedule(const ScheduleOptions& options);

// Epochs and steps count from 0, steps anew in each epoch. `base_lr` is the greatest rate of a one-cycle.
// Beyond the run's end one-cycle stays where it ended; cosine goes on as a cosine.
double learning_rate_at(const ScheduleOptions& options, double base_lr, std::int64_t epoch, std::int64_t step,
                        std::int64_t steps_per_epoch);

// One-cycle moves the momentum against the rate; the others leave it.
double momentum_at(const ScheduleOptions& options, double base_momentum, std::int64_t epoch,
                   std::int64_t step, std::int64_t steps_per_epoch);

}  // namespace tandem
