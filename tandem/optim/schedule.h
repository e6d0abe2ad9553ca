// Learning-rate schedules as pure functions of epoch and step: there is no scheduler state to save or
// advance. The formulas are PyTorch's StepLR and CosineAnnealingLR (both once per epoch) and OneCycleLR
// (every step), and a triangle of two straight lines (every step).
#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/registry.h"

namespace tandem {

enum class ScheduleKind { constant, step, cosine, one_cycle, triangular };

/// Options of all kinds; each kind reads its own.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t epochs = 1;        ///< length of the run; the period of all but constant and step
  std::int64_t warmup_steps = 0;  ///< linear warm-up for any kind: step t < N uses (t + 1) / N of its rate
  double warmup_epochs = 0;       ///< the same in epochs, rounded to steps; added to warmup_steps

  std::int64_t step_size = 7;  ///< step: epochs between two reductions
  double gamma = 0.1;          ///< step: factor of a reduction

  double min_lr = 0;  ///< cosine: final learning rate

  double pct_start = 0.3;         ///< one_cycle, triangular: fraction of the run with a rising rate
  double div_factor = 25;         ///< one_cycle: the initial rate is base_lr / div_factor
  double final_div_factor = 1e4;  ///< one_cycle: the final rate is the initial one / final_div_factor
  double min_momentum = 0.85;     ///< one_cycle: momentum at the highest rate
  double max_momentum = 0.95;     ///< one_cycle: momentum at the start and the end

  double start_factor = 0.2;  ///< triangular: the initial rate is start_factor · base_lr
  double end_factor = 0;      ///< triangular: the rate reaches end_factor · base_lr after the last step
};

/// The position of one step. Epochs count from 0; steps count from 0 within each epoch.
struct SchedulePosition {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t steps_per_epoch = 1;

  std::int64_t run_step() const { return epoch * steps_per_epoch + step; }
};

/// One kind of schedule. `rate` gives the learning rate before the warm-up; `momentum` is null for a schedule
/// that leaves it alone.
struct ScheduleRow {
  std::string name;
  std::string summary;
  ScheduleKind kind = ScheduleKind::constant;
  double (*rate)(const ScheduleOptions& options, double base_lr, const SchedulePosition& at) = nullptr;
  double (*momentum)(const ScheduleOptions& options, const SchedulePosition& at) = nullptr;
};

/// The schedules by name, in the order of ScheduleKind.
const Registry<ScheduleRow>& schedules();

/// Throws Error for options out of range: counts below 1, factors that are not positive and finite.
void check_schedule(const ScheduleOptions& options);

/// The learning rate of one step. Epochs count from 0; steps count from 0 within each epoch. `base_lr` is the
/// maximum rate of one_cycle and triangular. After the end of the run these keep their final rate and cosine
/// continues periodically.
double learning_rate_at(const ScheduleOptions& options, double base_lr, std::int64_t epoch, std::int64_t step,
                        std::int64_t steps_per_epoch);

/// The momentum of one step. one_cycle lowers it while the rate rises and raises it while the rate falls; the
/// other kinds return `base_momentum`.
double momentum_at(const ScheduleOptions& options, double base_momentum, std::int64_t epoch,
                   std::int64_t step, std::int64_t steps_per_epoch);

}  // namespace tandem
