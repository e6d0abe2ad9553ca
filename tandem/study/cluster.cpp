#include "tandem/study/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/study/cluster_findings.h"
#include "tandem/study/cluster_rank.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/measure.h"
#include "tandem/study/study_progress.h"

namespace tandem {
namespace {

// The model is fitted to these numbers of ranks, and predicts more.
constexpr int min_fitted = 2, max_fitted = 4;
// Of the first loss, relative to that of the fewest ranks: shards change its rounding.
constexpr double loss_tolerance = 1e-4;

std::string ranks_text(int ranks) {
  return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
}

// Those of the options in increasing order, else 1, 2, 4, … up to the CPUs, and what the model needs.
std::vector<int> rank_numbers(const StudyOptions& options) {
  std::vector<int> numbers = options.ranks;
  if (numbers.empty()) numbers = {1, 2};
  if (options.ranks.empty())
    for (int ranks = 4; ranks <= usable_cpus(); ranks *= 2) numbers.push_back(ranks);
  if (!options.simulate.empty()) numbers.insert(numbers.end(), {min_fitted, max_fitted});
  return increasing(std::move(numbers));
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// What the starts of one number of ranks measured together.
struct Measured {
  int ranks = 0;
  RankFigures figures;

  void add(const RankFigures& more) {
    if (figures.step_ms.empty()) {
      figures = more;
      return;
    }
    append(figures.step_ms, more.step_ms);
    append(figures.without_ms, more.without_ms);
    append(figures.exchange_ms, more.exchange_ms);
    append(figures.sums, more.sums);
    append(figures.gathers, more.gathers);
    for (std::size_t rank = 0; rank < figures.rank_ms.size(); ++rank)  // the least disturbed start
      figures.rank_ms[rank] = std::min(figures.rank_ms[rank], more.rank_ms[rank]);
  }
};

std::vector<Measured> measure(const ClusterCase& study_case, const StudyOptions& options,
                              StudyProgress& progress) {
  const int rounds = options.quick ? 1 : 3;
  const double budget_ms = options.quick ? 300 : 4000;
  std::vector<Measured> all;
  for (const int ranks : rank_numbers(options)) all.push_back({.ranks = ranks, .figures = {}});
  for (int round = 1; round <= rounds; ++round)
    for (Measured& one : all)
      if (progress.start(
              fmt::format("{}, {}, round {} of {}", study_case.name(), ranks_text(one.ranks), round, rounds)))
        one.add(measure_ranks(study_case, one.ranks, budget_ms, options));
  std::erase_if(all, [](const Measured& one) { return one.figures.step_ms.empty(); });
  return all;
}

// What the exchange adds to a step: the median of the differences of steps that followed each other, which
// other work on the machine disturbs less than the medians of both.
double added_ms(const RankFigures& figures) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < figures.step_ms.size(); ++i)
    differences.push_back(figures.step_ms[i] - figures.without_ms[i]);
  return timing_of(std::move(differences)).median_ms;
}

void add_slowest(StudyRow& row, const std::vector<double>& rank_ms) {
  const auto slowest = std::ranges::max_element(rank_ms);
  row.figures["slowest_rank"] = static_cast<double>(slowest - rank_ms.begin());
  row.figures["slowest_behind"] = *slowest / timing_of(rank_ms).median_ms - 1;
}

StudyRow row_of(const Measured& one, const Measured& first, const ClusterCase& study_case) {
  const RankFigures& figures = one.figures;
  StudyRow row{.case_name = study_case.name(), .version = ranks_text(one.ranks)};
  row.ranks = one.ranks;
  row.engine = figures.engine;
  if (one.ranks > usable_cpus()) row.note = "oversubscribed";
  const double loss = first.figures.loss;
  row.figures["max_error"] = std::abs(figures.loss - loss) / std::max(std::abs(loss), 1e-30);
  row.agrees = row.value("max_error") <= loss_tolerance;
  if (!row.agrees) {
    set_times(row, not_timed);
    return row;
  }
  const auto rate = [&](const Measured& of) {
    return 1e3 * static_cast<double>(study_case.batch_size) / timing_of(of.figures.step_ms).median_ms;
  };
  set_times(row, timing_of(figures.step_ms));
  row.figures["samples_per_s"] = rate(one);
  if (first.ranks == 1) row.figures["efficiency"] = rate(one) / rate(first);
  if (one.ranks == 1) return row;
  const double without_ms = timing_of(figures.without_ms).median_ms;
  const double exchange_ms = timing_of(figures.exchange_ms).median_ms;
  const Overlap overlap = overlap_of(without_ms + added_ms(figures), without_ms, exchange_ms);
  row.figures["without_exchange_ms"] = without_ms;
  row.figures["exchange_ms"] = exchange_ms;
  row.figures["exposed_ms"] = overlap.exposed_ms;
  row.figures["hidden"] = overlap.hidden;
  add_slowest(row, figures.rank_ms);
  return row;
}

// Those of at most so many ranks.
std::vector<MeasuredRanks> fitted_ranks(const std::vector<Measured>& all, int max_ranks) {
  std::vector<MeasuredRanks> fitted;
  for (const Measured& one : all)
    if (one.ranks >= min_fitted && one.ranks <= max_ranks)
      fitted.push_back({.ranks = one.ranks,
                        .added_ms = added_ms(one.figures),
                        .without_ms = timing_of(one.figures.without_ms).median_ms,
                        .traffic = one.figures.traffic,
                        .sums = one.figures.sums,
                        .gathers = one.figures.gathers});
  return fitted;
}

void add_model(ClusterResult& result, const std::vector<Measured>& all, const StudyOptions& options) {
  // Those that had a CPU each, if there are any.
  std::vector<MeasuredRanks> fitted = fitted_ranks(all, std::min(max_fitted, usable_cpus()));
  if (fitted.empty()) fitted = fitted_ranks(all, max_fitted);
  if (fitted.empty()) return;
  for (const MeasuredRanks& one : fitted) result.fitted.push_back(one.ranks);
  result.model = fit_cluster_model(fitted);
  const ClusterModel& model = *result.model;
  const auto batch = static_cast<double>(result.study_case.batch_size);
  const StudyRow& first = result.measured.front();
  // More ranks of this machine share its CPUs and the batch.
  for (const Measured& one : all) {
    if (one.ranks <= max_fitted || one.ranks > usable_cpus()) continue;
    result.here.push_back(
        modelled_row(fmt::format("modelled from {} ranks: {}", fmt::join(result.fitted, " and "),
                                 result.study_case.name()),
                     ranks_text(one.ranks), one.ranks, batch / one.ranks, predict_here(model, one.ranks)));
    StudyRow& row = result.here.back();
    row.figures["efficiency"] = std::nullopt;
    if (first.ranks == 1)
      row.figures["efficiency"] = row.value("samples_per_s") / first.value("samples_per_s");
  }
  const double images = batch / model.base_ranks;
  const auto simulate = [&](ClusterSize size, const std::string& link, const LinkTimes& between) {
    result.simulated.push_back(modelled_row(fmt::format("modelled: {}, {:.3g} images per rank; {}",
                                                        result.study_case.network_name(), images, link),
                                            fmt::format("{}×{}", size.nodes, size.ranks), size.total(),
                                            images, predict_step(model, size, between)));
  };
  for (const ClusterSize size : options.simulate)
    if (size.nodes == 1) simulate(size, "one node", {});
  for (const Link& link : cluster_links)
    for (const ClusterSize size : options.simulate)
      if (size.nodes > 1) simulate(size, fmt::format("{} between nodes", link.name), link.times);
}

ClusterResult run_case(const ClusterCase& study_case, const StudyOptions& options, StudyProgress& progress) {
  ClusterResult result{.study_case = study_case};
  const std::vector<Measured> all = measure(study_case, options, progress);
  for (const Measured& one : all) result.measured.push_back(row_of(one, all.front(), study_case));
  const bool agree = std::ranges::all_of(result.measured, &StudyRow::agrees);
  if (agree && !all.empty()) add_model(result, all, options);
  return result;
}

std::vector<ClusterCase> cases_of(const StudyOptions& options) {
  std::vector<std::string> names = options.cases;
  if (names.empty()) names = {options.quick ? "resnet18 32 batch 16" : "resnet18 224 batch 32"};
  std::vector<ClusterCase> cases;
  for (const std::string& name : names) {
    cases.push_back(parse_cluster_case(name));
    const int most = rank_numbers(options).back();
    check(most <= cases.back().batch_size,
          "[study cluster] expected at most {} ranks for \"{}\", one per image, got {}",
          cases.back().batch_size, name, most);
  }
  return cases;
}

}  // namespace

StudyReport study_cluster(const StudyOptions& options) {
  for (const Device device : options.devices)
    check(!device.is_cuda(), "[study cluster] expected the CPU, got {}", device.to_string());
  StudyReport report{.study = "cluster",
                     .title = "Training on several ranks",
                     .machine = report_facts(),
                     .introduction =
                         "Ranks, processes with equal shares of this machine's CPUs, share every batch of "
                         "random images: each computes the gradients of its images and all apply the sum. "
                         "Times are per step. “Exchange” is what the ranks send each other in a step, "
                         "measured alone; “exposed” is how much longer a step takes than one whose exchange "
                         "returns at once, and “hidden” the rest of it, which goes on during the "
                         "computation. “Efficiency” is the rate relative to one rank with all CPUs. Before "
                         "measuring, the first loss must agree, and all ranks end with the same weights.",
                     .rows = {},
                     .findings = {},
                     .plots = {}};
  for (const ClusterSize size : options.simulate)
    report.versions.push_back(
        {fmt::format("{}×{}", size.nodes, size.ranks),
         fmt::format("modelled: {} node{}, {}{}", size.nodes, size.nodes == 1 ? "" : "s",
                     ranks_text(size.ranks), size.nodes == 1 ? "" : " each")});
  StudyProgress progress(options);
  for (const ClusterCase& study_case : cases_of(options)) {
    const ClusterResult result = run_case(study_case, options, progress);
    append(report.rows, result.measured);
    append(report.rows, result.here);
    append(report.rows, result.simulated);
    append(report.findings, cluster_findings(result));
    append(report.plots, cluster_plots(result, options.simulate, usable_cpus()));
  }
  append(report.findings, progress.findings());
  return report;
}

}  // namespace tandem
