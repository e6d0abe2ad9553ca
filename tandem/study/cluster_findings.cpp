#include "tandem/study/cluster_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/report/study_plots.h"
#include "tandem/study/compare_rows.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr double straggler_share = 0.1;  // behind the median rank

std::string time(double ms) {
  return format_number(ms, Unit::milliseconds);
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string rate(const StudyRow& row) {
  return fmt::format("{:.3g} images/s", row.value("samples_per_s"));
}

std::string fitted_text(const ClusterResult& result) {
  return fmt::format("{}", fmt::join(result.fitted, " and "));
}

const StudyRow* row_of(const std::vector<StudyRow>& rows, int ranks) {
  const auto found = std::ranges::find(rows, std::optional(ranks), &StudyRow::ranks);
  return found == rows.end() ? nullptr : &*found;
}

// That have a CPU each, if there are such.
const StudyRow& most_ranks(const ClusterResult& result) {
  const auto& rows = result.measured;
  const auto found = std::find_if(rows.rbegin(), rows.rend(),
                                  [](const StudyRow& row) { return row.note.empty() && *row.ranks > 1; });
  return found == rows.rend() ? rows.back() : *found;
}

void add_scaling(const ClusterResult& result, std::vector<std::string>& findings) {
  const StudyRow* const one = row_of(result.measured, 1);
  if (!one || result.measured.size() < 2) return;
  const std::string name = result.study_case.name();
  const StudyRow& best = *std::ranges::max_element(
      result.measured, {}, [](const StudyRow& row) { return row.value("samples_per_s"); });
  const StudyRow& most = most_ranks(result);
  if (compare_speed(best, *one) == Speed::faster)
    findings.push_back(fmt::format("{} train {} on this machine, {} of one process with the same CPUs ({}).",
                                   best.version, rate(best), percent(best.value("efficiency")), name));
  else
    findings.push_back(fmt::format(
        "Ranks do not make this machine faster: one process trains {}, {} {} ({}). They share its CPUs.",
        rate(*one), most.version, rate(most), name));
}

void add_exchange(const ClusterResult& result, std::vector<std::string>& findings) {
  const StudyRow& most = most_ranks(result);
  if (!most.figures["exchange_ms"]) return;
  const double alone = most.value("exchange_ms"), exposed = most.value("exposed_ms");
  const std::string beside =
      exposed > alone
          ? fmt::format(
                "nothing of it is hidden, and a step is {} longer than without it: ranks also wait "
                "for the slowest",
                time(exposed))
          : fmt::format("{} of it is hidden behind the computation, and a step is {} longer than without it",
                        percent(most.value("hidden")), time(exposed));
  findings.push_back(fmt::format("The exchange between {} takes {} alone; {} ({}).", most.version,
                                 time(alone), beside, result.study_case.name()));
}

void add_straggler(const ClusterResult& result, std::vector<std::string>& findings) {
  const StudyRow* worst = nullptr;
  for (const StudyRow& row : result.measured)
    if (row.figures["slowest_behind"] &&
        (!worst || row.value("slowest_behind") > worst->value("slowest_behind")))
      worst = &row;
  if (!worst) return;
  const double behind = worst->value("slowest_behind");
  const std::string name = result.study_case.name();
  if (behind > straggler_share)
    findings.push_back(fmt::format(
        "Of {}, rank {} is the slowest: it computes {} longer than the median rank, and the others wait "
        "({}).",
        worst->version, worst->value("slowest_rank"), percent(behind), name));
  else
    findings.push_back(fmt::format("No rank computes more than {:.1f} % longer than the median rank ({}).",
                                   std::ceil(1000 * behind) / 10, name));
}

void add_predictions(const ClusterResult& result, std::vector<std::string>& findings) {
  const std::string fitted = fitted_text(result);
  for (const StudyRow& row : result.here) {
    const StudyRow* const measured = row_of(result.measured, *row.ranks);
    if (!measured) continue;
    const double off = row.value("samples_per_s") / measured->value("samples_per_s") - 1;
    findings.push_back(
        fmt::format("Modelled from {} ranks, {} train {}; measured: {}. The model is {:.1f} % too {} ({}).",
                    fitted, row.version, rate(row), rate(*measured), 100 * std::abs(off),
                    off > 0 ? "fast" : "slow", result.study_case.name()));
  }
  if (result.simulated.empty()) return;
  const ClusterModel& model = *result.model;
  findings.push_back(fmt::format(
      "Modelled, not measured: every rank computes as one of {} ranks of this machine does, with the same "
      "images per rank. Sums inside a node take {} per message and {} per MB, fitted to {} ranks, and {:.1f} "
      "times as long within a step, where ranks also wait for the slowest. Links between nodes are those "
      "stated, shared by the ranks of a node and free of other traffic; sums between nodes go on while "
      "gradients are computed.",
      model.base_ranks, time(model.sums.message_ms), time(model.sums.megabyte_ms), fitted, model.slowdown));
}

Series rate_series(const std::vector<StudyRow>& rows, const std::string& name) {
  Series series{.name = name, .x = {}, .y = {}};
  for (const StudyRow& row : rows) {
    const double median = row.value("median_ms"), rate = row.value("samples_per_s");
    series.x.push_back(*row.ranks);
    series.y.push_back(rate);
    series.low.push_back(rate * median / row.figures["max_ms"].value_or(median));
    series.high.push_back(rate * median / row.figures["min_ms"].value_or(median));
  }
  return series;
}

Plot rate_plot(const ClusterResult& result) {
  Plot plot{.title = result.study_case.name() + " on this machine",
            .x_label = "ranks",
            .y_label = "images/s: higher is better",
            .categories = {},
            .series = {rate_series(result.measured, "measured")}};
  if (result.here.empty()) return plot;
  Series modelled{
      .name = fmt::format("modelled from {} ranks", fitted_text(result)), .x = {}, .y = {}, .dashed = true};
  const auto images = static_cast<double>(result.study_case.batch_size);
  if (result.model)
    for (const int ranks : result.fitted) {
      modelled.x.push_back(ranks);
      modelled.y.push_back(1e3 * images / predict_here(*result.model, ranks).step_ms);
    }
  for (const StudyRow& row : result.here) {
    modelled.x.push_back(*row.ranks);
    modelled.y.push_back(row.value("samples_per_s"));
  }
  plot.series.push_back(std::move(modelled));
  return plot;
}

Plot exchange_plot(const ClusterResult& result) {
  Plot plot{.title = "Exchange, " + result.study_case.name(),
            .x_label = "ranks",
            .y_label = "time per step: lower is better",
            .y_unit = Unit::milliseconds,
            .categories = {},
            .series = {{.name = "alone", .x = {}, .y = {}}, {.name = "exposed", .x = {}, .y = {}}}};
  for (const StudyRow& row : result.measured) {
    if (!row.figures["exchange_ms"]) continue;
    plot.series[0].x.push_back(*row.ranks);
    plot.series[0].y.push_back(row.value("exchange_ms"));
    plot.series[1].x.push_back(*row.ranks);
    plot.series[1].y.push_back(row.value("exposed_ms"));
  }
  return plot;
}

// The efficiency on 1, 2, 4, … nodes like those of `size`.
Plot efficiency_plot(const ClusterResult& result, ClusterSize size) {
  Plot plot{.title = fmt::format("Modelled: {} on nodes of {} rank{}", result.study_case.network_name(),
                                 size.ranks, size.ranks == 1 ? "" : "s"),
            .x_label = "nodes",
            .y_label = "modelled efficiency: higher is better",
            .log_x = true,
            .y_unit = Unit::share,
            .categories = {},
            .series = {}};
  for (const Link& link : cluster_links) {
    Series series{.name = std::string(link.name) + ", modelled", .x = {}, .y = {}};
    for (int nodes = 1;; nodes = std::min(2 * nodes, size.nodes)) {
      const Prediction step = predict_step(*result.model, {.nodes = nodes, .ranks = size.ranks}, link.times);
      series.x.push_back(nodes);
      series.y.push_back(result.model->without_ms / step.step_ms);
      if (nodes == size.nodes) break;
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

StudyRow modelled_row(const std::string& case_name, const std::string& version, int ranks, double images,
                      const Prediction& prediction) {
  StudyRow row{.case_name = case_name, .version = version};
  row.ranks = ranks;
  row.basis = modelled_basis;
  const Overlap overlap = overlap_of(prediction.step_ms, prediction.without_ms, prediction.exchange_ms);
  row.figures["median_ms"] = prediction.step_ms;
  row.figures["without_exchange_ms"] = prediction.without_ms;
  row.figures["samples_per_s"] = 1e3 * images * ranks / prediction.step_ms;
  row.figures["exchange_ms"] = prediction.exchange_ms;
  row.figures["exposed_ms"] = overlap.exposed_ms;
  row.figures["hidden"] = overlap.hidden;
  row.figures["efficiency"] = prediction.without_ms / prediction.step_ms;
  return row;
}

std::vector<std::string> cluster_findings(const ClusterResult& result) {
  std::vector<std::string> findings;
  if (result.measured.empty()) return findings;
  add_scaling(result, findings);
  add_exchange(result, findings);
  add_straggler(result, findings);
  add_predictions(result, findings);
  return findings;
}

std::vector<Plot> cluster_plots(const ClusterResult& result, const std::vector<ClusterSize>& sizes,
                                int usable_cpus) {
  std::vector<Plot> plots;
  if (result.measured.size() < 2) return plots;
  plots.push_back(rate_plot(result));
  plots.push_back(exchange_plot(result));
  for (Plot& plot : plots) plot.limit = cpu_limit(usable_cpus);
  if (!result.model) return plots;
  for (const ClusterSize size : sizes)
    if (size.nodes > 1) plots.push_back(efficiency_plot(result, size));
  return plots;
}

}  // namespace tandem
