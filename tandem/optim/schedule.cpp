#include "tandem/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tandem/core/check.h"

namespace tandem {
namespace {

double cosine_anneal(double start, double end, double fraction) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * fraction));
}

// Anneals from `first` to `middle` to `last` along two half cosines over `total` steps.
double anneal_two_phases(const ScheduleOptions& options, std::int64_t step, std::int64_t total, double first,
                         double middle, double last) {
  const auto end = static_cast<double>(std::max<std::int64_t>(total - 1, 0));
  const double now = std::min(static_cast<double>(step), end);
  const double peak = options.pct_start * static_cast<double>(total) - 1;
  if (now <= peak) return peak > 0 ? cosine_anneal(first, middle, now / peak) : middle;
  return cosine_anneal(middle, last, end > peak ? (now - peak) / (end - peak) : 1);
}

bool is_positive(double value) {
  return std::isfinite(value) && value > 0;
}

double constant_rate(const ScheduleOptions&, double base_lr, const SchedulePosition&) {
  return base_lr;
}

double step_rate(const ScheduleOptions& options, double base_lr, const SchedulePosition& at) {
  const std::int64_t reductions = at.epoch / options.step_size;
  return base_lr * std::pow(options.gamma, static_cast<double>(reductions));
}

double cosine_rate(const ScheduleOptions& options, double base_lr, const SchedulePosition& at) {
  return cosine_anneal(base_lr, options.min_lr,
                       static_cast<double>(at.epoch) / static_cast<double>(options.epochs));
}

double one_cycle_rate(const ScheduleOptions& options, double base_lr, const SchedulePosition& at) {
  const double start = base_lr / options.div_factor;
  return anneal_two_phases(options, at.run_step(), options.epochs * at.steps_per_epoch, start, base_lr,
                           start / options.final_div_factor);
}

double one_cycle_momentum(const ScheduleOptions& options, const SchedulePosition& at) {
  return anneal_two_phases(options, at.run_step(), options.epochs * at.steps_per_epoch, options.max_momentum,
                           options.min_momentum, options.max_momentum);
}

// Linear from start_factor to 1 over the whole steps of pct_start, then to end_factor.
double triangular_rate(const ScheduleOptions& options, double base_lr, const SchedulePosition& at) {
  const auto total = static_cast<double>(options.epochs * at.steps_per_epoch);
  const double rise = std::floor(total * options.pct_start);
  const double now = std::min(static_cast<double>(at.run_step()), total);
  const double factor =
      now < rise ? std::lerp(options.start_factor, 1.0, now / rise)
                 : std::lerp(1.0, options.end_factor, total > rise ? (now - rise) / (total - rise) : 0.0);
  return base_lr * factor;
}

const ScheduleRow& row_of(ScheduleKind kind) {
  const ScheduleRow& row = schedules().rows()[static_cast<std::size_t>(kind)];
  expect(row.kind == kind);
  return row;
}

}  // namespace

const Registry<ScheduleRow>& schedules() {
  static const Registry<ScheduleRow> rows(
      "schedule",
      {
          {"constant", "the same rate throughout", ScheduleKind::constant, constant_rate},
          {"step", "a reduction every few epochs", ScheduleKind::step, step_rate},
          {"cosine", "half a cosine over the run", ScheduleKind::cosine, cosine_rate},
          {"one-cycle", "up, then down, with momentum the other way", ScheduleKind::one_cycle, one_cycle_rate,
           one_cycle_momentum},
          {"triangular", "a straight line up, another one down", ScheduleKind::triangular, triangular_rate},
      });
  return rows;
}

void check_schedule(const ScheduleOptions& options) {
  check(options.epochs > 0, "[schedule] expected at least one epoch, got {}", options.epochs);
  check(options.warmup_steps >= 0, "[schedule] expected 0 or more warm-up steps, got {}",
        options.warmup_steps);
  check(options.warmup_epochs >= 0 && options.warmup_epochs < 1e9,
        "[schedule] expected 0 or more warm-up epochs, got {}", options.warmup_epochs);
  check(options.step_size > 0, "[schedule] expected a step size of 1 or more epochs, got {}",
        options.step_size);
  check(is_positive(options.gamma), "[schedule] expected a gamma above 0, got {}", options.gamma);
  check(std::isfinite(options.min_lr) && options.min_lr >= 0,
        "[schedule] expected a minimum learning rate of 0 or more, got {}", options.min_lr);
  check(options.pct_start >= 0 && options.pct_start <= 1, "[schedule] expected pct_start from 0 to 1, got {}",
        options.pct_start);
  check(is_positive(options.div_factor) && is_positive(options.final_div_factor),
        "[schedule] expected div factors above 0, got {} and {}", options.div_factor,
        options.final_div_factor);
  check(is_positive(options.start_factor) && std::isfinite(options.end_factor) && options.end_factor >= 0,
        "[schedule] expected a start factor above 0 and an end factor of 0 or more, got {} and {}",
        options.start_factor, options.end_factor);
}

double learning_rate_at(const ScheduleOptions& options, double base_lr, std::int64_t epoch, std::int64_t step,
                        std::int64_t steps_per_epoch) {
  const SchedulePosition at{.epoch = epoch, .step = step, .steps_per_epoch = steps_per_epoch};
  double rate = row_of(options.kind).rate(options, base_lr, at);
  const std::int64_t warmup =
      options.warmup_steps + std::llround(options.warmup_epochs * static_cast<double>(steps_per_epoch));
  if (at.run_step() < warmup) rate *= static_cast<double>(at.run_step() + 1) / static_cast<double>(warmup);
  return rate;
}

double momentum_at(const ScheduleOptions& options, double base_momentum, std::int64_t epoch,
                   std::int64_t step, std::int64_t steps_per_epoch) {
  const auto momentum = row_of(options.kind).momentum;
  return momentum ? momentum(options, {.epoch = epoch, .step = step, .steps_per_epoch = steps_per_epoch})
                  : base_momentum;
}

}  // namespace tandem
