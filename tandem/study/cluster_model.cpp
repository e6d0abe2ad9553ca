#include "tandem/study/cluster_model.h"

#include <algorithm>

#include "tandem/core/check.h"

namespace tandem {
namespace {

double sum_volume(double ranks) {
  return 2 * (ranks - 1) / ranks;
}

double gather_volume(double ranks) {
  return ranks - 1;
}

// `megabytes` is what a rank exchanges with each of the others.
double exchange_time(const LinkTimes& inside, const LinkTimes& between, ClusterSize size, double megabytes) {
  const double ranks = size.ranks, others = size.total() - 1, outside = size.total() - ranks;
  return inside.message_ms * (ranks - 1) + between.message_ms * outside +
         megabytes * std::max(inside.megabyte_ms * others, between.megabyte_ms * ranks * outside);
}

// The exchange of a step.
struct Exchange {
  double gathers = 0, sums = 0;
  double late = 0;  // from the last gradient on, if each bucket is summed when it is ready

  double total() const { return gathers + sums; }
};

Exchange exchange_of(const ClusterModel& model, ClusterSize size, const LinkTimes& between) {
  const StepTraffic& traffic = model.traffic;
  Exchange exchange{.gathers = traffic.gathers *
                               exchange_time(model.gathers, between, size, traffic.gather_megabytes)};
  double end = 0, last_ready = 0;
  for (const StepTraffic::Bucket& bucket : traffic.buckets) {  // one after the other
    const double time = exchange_time(model.sums, between, size, 2 * bucket.megabytes / size.total());
    exchange.sums += time;
    end = std::max(end, bucket.ready_ms) + time;
    last_ready = std::max(last_ready, bucket.ready_ms);
  }
  exchange.late = std::max(0.0, end - last_ready);
  return exchange;
}

// Least squares; more ranks never make the step shorter.
void fit_ranks(ClusterModel& model, std::span<const MeasuredRanks> measured) {
  const auto count = static_cast<double>(measured.size());
  double ranks = 0, ms = 0, product = 0, square = 0;
  for (const MeasuredRanks& one : measured) {
    ranks += one.ranks / count;
    ms += one.without_ms / count;
  }
  for (const MeasuredRanks& one : measured) {
    product += (one.ranks - ranks) * (one.without_ms - ms);
    square += (one.ranks - ranks) * (one.ranks - ranks);
  }
  model.rank_ms = square > 0 ? std::max(0.0, product / square) : 0;
  model.fixed_ms = ms - model.rank_ms * ranks;
}

}  // namespace

double StepTraffic::megabytes() const {
  double sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.megabytes;
  return sum;
}

Overlap overlap_of(double step_ms, double without_ms, double exchange_ms) {
  const double exposed_ms = std::max(0.0, step_ms - without_ms);
  if (!(exchange_ms > 0)) return {.exposed_ms = exposed_ms, .hidden = 0};
  const double hidden = 1 - exposed_ms / exchange_ms;
  return {.exposed_ms = exposed_ms, .hidden = hidden > 1e-9 ? hidden : 0};  // less is rounding
}

LinkTimes fit_link(std::span<const ExchangeSample> samples, double (*volume)(double ranks)) {
  double xx = 0, xy = 0, yy = 0, x_sum = 0, y_sum = 0;
  for (const ExchangeSample& sample : samples) {
    if (!(sample.ms > 0)) continue;
    const double x = (sample.ranks - 1) / sample.ms, y = volume(sample.ranks) * sample.megabytes / sample.ms;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x_sum += x;
    y_sum += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant > 1e-12 * xx * yy) {
    const LinkTimes both{.message_ms = (x_sum * yy - y_sum * xy) / determinant,
                         .megabyte_ms = (y_sum * xx - x_sum * xy) / determinant};
    if (both.message_ms >= 0 && both.megabyte_ms >= 0) return both;
    if (both.message_ms < 0) return {.message_ms = 0, .megabyte_ms = y_sum / yy};
  }
  return {.message_ms = xx > 0 ? x_sum / xx : 0, .megabyte_ms = 0};
}

ClusterModel fit_cluster_model(std::span<const MeasuredRanks> measured) {
  expect(!measured.empty());
  std::vector<ExchangeSample> sums, gathers;
  for (const MeasuredRanks& one : measured) {
    sums.insert(sums.end(), one.sums.begin(), one.sums.end());
    gathers.insert(gathers.end(), one.gathers.begin(), one.gathers.end());
  }
  const MeasuredRanks& base = *std::ranges::max_element(measured, {}, &MeasuredRanks::ranks);
  ClusterModel model{.base_ranks = base.ranks,
                     .without_ms = base.without_ms,
                     .traffic = base.traffic,
                     .sums = fit_link(sums, sum_volume),
                     .gathers = fit_link(gathers, gather_volume)};
  fit_ranks(model, measured);
  double product = 0, square = 0;
  for (const MeasuredRanks& one : measured) {
    const double alone = predict_here(model, one.ranks).exchange_ms;
    product += one.added_ms * alone;
    square += alone * alone;
  }
  if (square > 0) model.slowdown = std::max(1.0, product / square);
  return model;
}

Prediction predict_step(const ClusterModel& model, ClusterSize size, const LinkTimes& between) {
  if (size.total() == 1) return {.step_ms = model.without_ms, .without_ms = model.without_ms};
  const Exchange exchange = exchange_of(model, size, between);
  const Exchange here = exchange_of(model, {.nodes = 1, .ranks = model.base_ranks}, {});
  const double exposed = exchange.gathers + (size.nodes > 1 ? exchange.late : exchange.sums) +
                         (model.slowdown - 1) * here.total();
  return {.step_ms = model.without_ms + exposed,
          .without_ms = model.without_ms,
          .exchange_ms = exchange.total(),
          .exposed_ms = exposed};
}

Prediction predict_here(const ClusterModel& model, int ranks) {
  const double exchange = exchange_of(model, {.nodes = 1, .ranks = ranks}, {}).total();
  const double without = model.fixed_ms + model.rank_ms * ranks, exposed = model.slowdown * exchange;
  return {
      .step_ms = without + exposed, .without_ms = without, .exchange_ms = exchange, .exposed_ms = exposed};
}

}  // namespace tandem
