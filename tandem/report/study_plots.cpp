// Study rows to plots. Where threads were swept, the bars show the fastest thread count of each version.
#include "tandem/report/study_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/report/study_rows.h"

namespace tandem {
namespace {

// The median of a row has the spread of its repetitions, and so has what is proportional to its inverse.
void add_spread(Series& series, const StudyRow* row, std::string_view key) {
  double low = std::numeric_limits<double>::quiet_NaN(), high = low;
  if (row && key == "median_ms") {
    low = row->value("min_ms");
    high = row->value("max_ms");
  } else if (row && key == "share_of_peak") {
    low = row->value("share_of_peak") * row->value("median_ms") / row->value("max_ms");
    high = row->value("share_of_peak") * row->value("median_ms") / row->value("min_ms");
  }
  series.low.push_back(low);
  series.high.push_back(high);
}

// One figure of one version over all cases; empty when no case has it.
Series figure_series(const std::vector<CaseRows>& cases, const std::string& version, int color,
                     std::string_view key) {
  Series series{.name = version, .x = {}, .y = {}, .color = color};
  bool any = false;
  for (const CaseRows& group : cases) {
    const StudyRow* row = fastest_row(group.rows, group.case_name, version);
    const std::optional<double> value = row ? row->figures.find(key) : std::nullopt;
    any = any || value;
    add_spread(series, row, key);
    series.y.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  if (!any) series.y.clear();
  if (std::ranges::none_of(series.low, [](double low) { return std::isfinite(low); }) || !any) {
    series.low.clear();
    series.high.clear();
  }
  return series;
}

// Values that span more than one and a half decades need a logarithmic axis to be visible.
bool needs_log_axis(const Plot& plot) {
  double min = std::numeric_limits<double>::infinity();
  double max = 0;
  for (const Series& series : plot.series)
    for (const double y : series.y)
      if (y > 0) {
        min = std::min(min, y);
        max = std::max(max, y);
      }
  return max > 30 * min;
}

// Of times that differ much, the axis is logarithmic.
void set_y_axis(Plot& plot, const FigurePlot& text, Unit unit) {
  plot.log_y = unit == Unit::milliseconds && needs_log_axis(plot);
  plot.y_label =
      fmt::format("{}{}: {} is better", text.y_label, plot.log_y ? ", logarithmic" : "", text.better);
  plot.y_unit = unit;
}

Plot bar_plot(const std::vector<StudyRow>& rows, const std::vector<CaseRows>& cases,
              const StudyField& field) {
  Plot plot;
  plot.title = field.plot.title;
  plot.kind = PlotKind::bars;
  for (const CaseRows& group : cases) plot.categories.push_back(group.case_name);
  const std::vector<std::string> versions = versions_of(rows);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    Series series = figure_series(cases, versions[i], static_cast<int>(i), field.key);
    if (!series.y.empty()) plot.series.push_back(std::move(series));
  }
  set_y_axis(plot, field.plot, field.unit);
  return plot;
}

// Compares the last version of Tandem that has copies (the tuned CUDA kernel), with and without them, with
// the last one that has none (the tuned CPU code). Versions of others follow Tandem's.
Plot copies_plot(const std::vector<StudyRow>& rows, const std::vector<CaseRows>& cases) {
  Plot plot;
  plot.kind = PlotKind::bars;
  for (const CaseRows& group : cases) plot.categories.push_back(group.case_name);
  std::vector<std::string> versions = versions_of(rows);
  if (const auto cuda = std::ranges::find(versions, "cuda"); cuda != versions.end())
    versions.erase(cuda + 1, versions.end());
  std::optional<Series> cpu_series;
  for (int i = static_cast<int>(versions.size()) - 1; i >= 0; --i) {
    const std::string& version = versions[i];
    Series with = figure_series(cases, version, 5, "with_copies_ms");
    if (with.y.empty()) {
      if (!cpu_series || cpu_series->y.empty()) cpu_series = figure_series(cases, version, i, "median_ms");
    } else if (plot.series.empty()) {
      plot.title = fmt::format("Cost of the copies: {}", version);
      plot.series.push_back(figure_series(cases, version, i, "median_ms"));
      with.name = version + " with copies";
      plot.series.push_back(std::move(with));
    }
  }
  if (plot.series.empty()) return plot;
  if (cpu_series && !cpu_series->y.empty()) plot.series.insert(plot.series.begin(), std::move(*cpu_series));
  set_y_axis(plot, {.y_label = "median time", .better = "lower"}, Unit::milliseconds);
  return plot;
}

Plot threads_plot(const std::vector<StudyRow>& rows, const std::vector<CaseRows>& cases, int cpus) {
  std::vector<StudyRow> with_threads = rows;
  std::erase_if(with_threads, [](const StudyRow& row) { return !row.threads; });
  const bool several = versions_of(with_threads).size() > 1;
  Plot plot;
  plot.title = "Scaling with threads";
  plot.x_label = "threads";
  plot.y_label = "speed-up over the lowest thread count";
  plot.y_unit = Unit::ratio;
  plot.log_x = true;
  plot.log_y = true;
  plot.limit = cpu_limit(cpus);
  double min_threads = std::numeric_limits<double>::infinity();
  double max_threads = 0;
  for (const CaseRows& group : cases) {
    for (const std::string& version : versions_of(group.rows)) {
      std::vector<StudyRow> swept;
      for (const StudyRow& row : group.rows)
        if (row.version == version && row.threads && row.value("median_ms") > 0) swept.push_back(row);
      std::sort(swept.begin(), swept.end(),
                [](const StudyRow& a, const StudyRow& b) { return *a.threads < *b.threads; });
      if (swept.size() < 2) continue;
      Series series{.name = group.case_name, .x = {}, .y = {}};
      if (several) series.name += ", " + version;
      series.color = 1 + static_cast<int>(plot.series.size());
      for (const StudyRow& row : swept) {
        series.x.push_back(*row.threads);
        const double base_ms = swept.front().value("median_ms");
        series.y.push_back(base_ms / row.value("median_ms"));
        series.low.push_back(base_ms / row.value("max_ms"));
        series.high.push_back(base_ms / row.value("min_ms"));
      }
      min_threads = std::min(min_threads, series.x.front());
      max_threads = std::max(max_threads, series.x.back());
      plot.series.push_back(std::move(series));
    }
  }
  if (!plot.series.empty())
    plot.series.push_back({.name = "ideal",
                           .x = {min_threads, max_threads},
                           .y = {1, max_threads / min_threads},
                           .dashed = true,
                           .color = 0});
  return plot;
}

}  // namespace

PlotLimit cpu_limit(int cpus) {
  const std::string name = fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s");
  return {.x = static_cast<double>(cpus), .name = name, .beyond = "oversubscribed: more than " + name};
}

std::vector<Plot> standard_plots(const std::vector<StudyRow>& rows, int cpus) {
  const std::vector<CaseRows> cases = rows_by_case(rows);
  std::vector<Plot> plots;
  for (const StudyField& field : study_fields)
    if (!field.plot.title.empty()) plots.push_back(bar_plot(rows, cases, field));
  plots.push_back(copies_plot(rows, cases));
  plots.push_back(threads_plot(rows, cases, cpus));
  std::erase_if(plots, [](const Plot& plot) { return plot.series.empty(); });
  return plots;
}

}  // namespace tandem
