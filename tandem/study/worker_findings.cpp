#include "tandem/study/worker_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tandem/report/study_plots.h"
#include "tandem/study/thread_findings.h"

namespace tandem {
namespace {

constexpr double negligible_wait = 0.05;        // share of an epoch
constexpr double min_scaling_efficiency = 0.7;  // per worker, relative to one
constexpr double negligible_slowdown = 1.1;     // relative to training without augmentation
constexpr const char* kinds[] = {"thread", "process"};

using Rows = std::vector<const StudyRow*>;

// The measured rows, by increasing number of workers.
Rows rows_of(const std::vector<StudyRow>& rows, std::string_view case_name, std::string_view version) {
  Rows chosen;
  for (const StudyRow& row : rows)
    if (row.case_name == case_name && row.version == version && row.agrees && row.figures["samples_per_s"])
      chosen.push_back(&row);
  std::stable_sort(chosen.begin(), chosen.end(), [](const StudyRow* a, const StudyRow* b) {
    return a->workers.value_or(0) < b->workers.value_or(0);
  });
  return chosen;
}

// "training on cpu", …: the cases that train.
std::vector<std::string> training_cases(const std::vector<StudyRow>& rows) {
  std::vector<std::string> cases;
  for (const StudyRow& row : rows)
    if (row.case_name != loading_case && std::ranges::find(cases, row.case_name) == cases.end())
      cases.push_back(row.case_name);
  return cases;
}

// "cpu by 2 threads" for "training on cpu by 2 threads".
std::string trainer_of(const std::string& case_name) {
  return case_name.substr(std::string_view("training on ").size());
}

std::string units(const std::string& kind) {
  return kind == "thread" ? "threads" : "processes";
}

std::string counted(int count, const std::string& kind) {
  return fmt::format("{} {}{}", count, kind, count == 1 ? "" : kind == "thread" ? "s" : "es");
}

std::string rate(const StudyRow& row) {
  const double value = row.value("samples_per_s");
  return value >= 1e6 ? fmt::format("{:.3g} million images/s", value / 1e6)
                      : fmt::format("{:.3g} thousand images/s", value / 1e3);
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string time(double ms) {
  return format_number(ms, Unit::milliseconds);
}

double waited_share(const StudyRow& row) {
  return row.figures["waited_ms"].value_or(0) / row.value("median_ms");
}

void add_scaling(const std::vector<StudyRow>& rows, const std::string& kind,
                 std::vector<std::string>& findings) {
  const Rows loading = rows_of(rows, loading_case, kind);
  if (loading.empty()) return;
  const StudyRow& first = *loading.front();
  const StudyRow& last = *loading.back();
  std::string text = fmt::format("{} augment{} {}", counted(*first.workers, kind),
                                 *first.workers == 1 ? "s" : "", rate(first));
  if (loading.size() > 1) {
    text += fmt::format(", {} {}: {} of linear scaling over {}", counted(*last.workers, kind), rate(last),
                        percent(last.figures["efficiency"].value_or(0)), counted(*first.workers, kind));
    const auto stops = std::find_if(loading.begin(), loading.end(), [](const StudyRow* row) {
      return row->figures["efficiency"] && row->value("efficiency") < min_scaling_efficiency;
    });
    text += stops == loading.end() ? ", so they scale"
                                   : fmt::format("; they stop scaling at {}", *(*stops)->workers);
  }
  findings.push_back(text + ".");
}

void add_kinds(const std::vector<StudyRow>& rows, std::vector<std::string>& findings) {
  const Rows threads = rows_of(rows, loading_case, "thread"),
             processes = rows_of(rows, loading_case, "process");
  if (threads.empty() || processes.empty() || threads.back()->workers != processes.back()->workers) return;
  findings.push_back(fmt::format(
      "{} reach {} of the rate of the same number of threads.",
      counted(*processes.back()->workers, "process"),
      percent(processes.back()->value("samples_per_s") / threads.back()->value("samples_per_s"))));
}

// The bottleneck of training with augmentation.
void add_bottleneck(const std::vector<StudyRow>& rows, const std::string& case_name, const std::string& kind,
                    int usable_cpus, std::vector<std::string>& findings) {
  const Rows training = rows_of(rows, case_name, kind);
  const Rows plain = rows_of(rows, case_name, "plain");
  const Rows loading = rows_of(rows, loading_case, kind);
  if (training.empty() || plain.empty() || loading.empty()) return;
  const StudyRow& last = *training.back();
  const StudyRow& alone = *loading.back();
  // The first worker count from which on the trainer hardly waits.
  auto saturated = training.end();
  while (saturated != training.begin() && waited_share(**(saturated - 1)) < negligible_wait) --saturated;
  const StudyRow& best = **std::min_element(
      training.begin(), training.end(),
      [](const StudyRow* a, const StudyRow* b) { return a->value("median_ms") < b->value("median_ms"); });
  const double slowdown = best.value("median_ms") / plain.front()->value("median_ms");
  const std::string where = fmt::format("Training on {} with {}: ", trainer_of(case_name), units(kind));
  // Augmentation cannot make training faster.
  const char* const caveat = slowdown < 0.9 ? " (other work on this machine disturbed the measurement)" : "";
  const std::string cost =
      fmt::format("the fastest epoch, with {}, takes {}, {:.2f} times an epoch without augmentation{}",
                  counted(*best.workers, kind), time(best.value("median_ms")), slowdown, caveat);
  if (saturated != training.end() && slowdown <= negligible_slowdown) {
    findings.push_back(fmt::format(
        "{}training-bound from {} on: more workers do not help. The trainer waits {} of an epoch; {}.", where,
        *(*saturated)->workers == 1 ? "1 worker" : fmt::format("{} workers", *(*saturated)->workers),
        percent(waited_share(**saturated)), cost));
  } else if (saturated != training.end()) {
    findings.push_back(fmt::format(
        "{}the CPUs are shared: from {} on the trainer waits only {} of an epoch, but {}: the workers "
        "compete with training for {} CPUs. More workers do not help.",
        where, *(*saturated)->workers == 1 ? "1 worker" : fmt::format("{} workers", *(*saturated)->workers),
        percent(waited_share(**saturated)), cost, usable_cpus));
  } else if (alone.figures["efficiency"].value_or(0) >= min_scaling_efficiency) {
    const double needed =
        *alone.workers * plain.front()->value("samples_per_s") / alone.value("samples_per_s");
    findings.push_back(
        fmt::format("{}augmentation-bound: with {} the trainer still waits {} of an epoch. Alone they "
                    "produce {}, and training without augmentation consumes {}: about {:.0f} such workers "
                    "would be needed. {}{}.",
                    where, counted(*last.workers, kind), percent(waited_share(last)), rate(alone),
                    rate(*plain.front()), std::ceil(needed), "Currently ", cost));
  } else {
    findings.push_back(
        fmt::format("{}the CPUs are shared: with {} on {} CPUs the trainer still waits {} of an epoch, and "
                    "augmentation reaches only {} of linear scaling over {}: more workers do not help. {}{}.",
                    where, counted(*last.workers, kind), usable_cpus, percent(waited_share(last)),
                    percent(alone.figures["efficiency"].value_or(0)),
                    counted(*loading.front()->workers, kind), "Currently ", cost));
  }
}

// More workers than CPUs.
void add_oversubscription(const std::vector<StudyRow>& rows, const std::string& kind, int usable_cpus,
                          std::vector<std::string>& findings) {
  const Rows loading = rows_of(rows, loading_case, kind);
  const auto over =
      std::ranges::find_if(loading, [&](const StudyRow* row) { return *row->workers > usable_cpus; });
  if (over == loading.end()) return;
  const StudyRow &base = over == loading.begin() ? **over : **(over - 1), &most = *loading.back();
  findings.push_back(oversubscription_text({&base, *base.workers}, {&most, *most.workers}, units(kind),
                                           std::string(loading_case), usable_cpus) +
                     ".");
}

// Where the trainer's threads were swept: the combination with the shortest epoch.
void add_best_threads(const std::vector<StudyRow>& rows, std::vector<std::string>& findings) {
  const StudyRow* best = nullptr;
  std::set<int> counts;
  for (const StudyRow& row : rows) {
    if (!row.threads || !row.workers || !row.agrees || !(row.value("median_ms") > 0)) continue;
    counts.insert(*row.threads);
    if (!best || row.value("median_ms") < best->value("median_ms")) best = &row;
  }
  if (counts.size() < 2) return;
  findings.push_back(fmt::format(
      "Of training on {} by {} threads, the shortest median epoch with augmentation takes {}: {} thread{} "
      "for training and {} for augmentation.",
      best->device, fmt::join(counts, ", "), time(best->value("median_ms")), *best->threads,
      *best->threads == 1 ? "" : "s", counted(*best->workers, best->version)));
}

Series line(const Rows& rows, const std::string& name, double (*value)(const StudyRow&)) {
  Series series{.name = name, .x = {}, .y = {}};
  for (const StudyRow* row : rows) {
    series.x.push_back(*row->workers);
    series.y.push_back(value(*row));
  }
  return series;
}

// The same for the times of the rows or, if `rates`, for their samples per second, with the spread.
Series spread_line(const Rows& rows, const std::string& name, bool rates) {
  Series series = line(rows, name, [](const StudyRow& row) { return row.value("median_ms"); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StudyRow& row = *rows[i];
    const double median_ms = row.value("median_ms"), min_ms = row.figures["min_ms"].value_or(median_ms),
                 max_ms = row.figures["max_ms"].value_or(median_ms);
    const double rate = row.value("samples_per_s");
    if (rates) series.y[i] = rate;
    series.low.push_back(rates ? rate * median_ms / max_ms : min_ms);
    series.high.push_back(rates ? rate * median_ms / min_ms : max_ms);
  }
  return series;
}

void add_plot(Plot plot, std::vector<Plot>& plots) {
  if (!plot.series.empty()) plots.push_back(std::move(plot));
}

}  // namespace

std::string training_case(const std::string& device, std::optional<int> threads) {
  if (!threads) return "training on " + device;
  return fmt::format("training on {} by {} thread{}", device, *threads, *threads == 1 ? "" : "s");
}

std::vector<std::string> worker_findings(const std::vector<StudyRow>& rows, int usable_cpus) {
  std::vector<std::string> findings;
  for (const std::string& name : training_cases(rows))
    for (const char* const kind : kinds) add_bottleneck(rows, name, kind, usable_cpus, findings);
  add_best_threads(rows, findings);
  for (const char* const kind : kinds) add_scaling(rows, kind, findings);
  for (const char* const kind : kinds) add_oversubscription(rows, kind, usable_cpus, findings);
  add_kinds(rows, findings);
  return findings;
}

std::vector<Plot> worker_plots(const std::vector<StudyRow>& rows, int usable_cpus) {
  std::vector<Plot> plots;
  Plot rates{.title = "Augmentation alone",
             .x_label = "workers",
             .y_label = "images/s: higher is better",
             .categories = {},
             .series = {}};
  for (const char* const kind : kinds)
    if (const Rows loading = rows_of(rows, loading_case, kind); !loading.empty())
      rates.series.push_back(spread_line(loading, kind, true));
  if (const Rows threads = rows_of(rows, loading_case, "thread"); threads.size() > 1) {
    const StudyRow &first = *threads.front(), &last = *threads.back();
    const double one = first.value("samples_per_s") / *first.workers;
    rates.series.push_back({.name = "linear scaling of threads",
                            .x = {double(*first.workers), double(*last.workers)},
                            .y = {one * *first.workers, one * *last.workers},
                            .dashed = true});
  }
  add_plot(std::move(rates), plots);
  for (const std::string& name : training_cases(rows)) {
    Plot epochs{.title = "Epoch time on " + trainer_of(name),
                .x_label = "workers",
                .y_label = "time per epoch: lower is better",
                .y_unit = Unit::milliseconds,
                .categories = {},
                .series = {}};
    Plot waits{.title = "Waiting for images on " + trainer_of(name),
               .x_label = "workers",
               .y_label = "share of an epoch the trainer waits",
               .y_unit = Unit::share,
               .categories = {},
               .series = {}};
    double min_workers = 0, max_workers = 0, longest_wait = 0;
    for (const char* const kind : kinds) {
      const Rows training = rows_of(rows, name, kind);
      if (training.empty()) continue;
      epochs.series.push_back(spread_line(training, kind, false));
      waits.series.push_back(line(training, kind, waited_share));
      for (const StudyRow* row : training) longest_wait = std::max(longest_wait, waited_share(*row));
      min_workers = *training.front()->workers;
      max_workers = *training.back()->workers;
    }
    if (const Rows plain = rows_of(rows, name, "plain"); !plain.empty() && max_workers > 0)
      epochs.series.push_back({.name = "without augmentation",
                               .x = {min_workers, max_workers},
                               .y = {plain.front()->value("median_ms"), plain.front()->value("median_ms")},
                               .dashed = true});
    add_plot(std::move(epochs), plots);
    if (longest_wait >= 0.01) add_plot(std::move(waits), plots);
  }
  for (Plot& plot : plots) plot.limit = cpu_limit(usable_cpus);
  return plots;
}

}  // namespace tandem
