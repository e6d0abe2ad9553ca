#include "tandem/report/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tandem/report/comparison.h"
#include "tandem/report/facts_json.h"
#include "tandem/report/interval.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/report/run_findings.h"
#include "tandem/report/training_json.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

using namespace detail;
using Runs = std::span<const ComparedRun>;

// What the figures after each epoch were measured on: the test images if a run had no others.
std::string measured_on(Runs runs) {
  return same_for_all(runs, [](const ComparedRun& run) { return run.report.val_name; })
             ? runs[0].report.val_name
             : "validation or test";
}

// ---- tables

std::string waited_text(const TrainingReport& report) {
  double waited = 0, seconds = 0;
  for (const EpochRecord& record : report.epochs) {
    waited += record.waited_seconds;
    seconds += record.seconds;
  }
  return seconds > 0 ? fmt::format("{:.1f} %", 100 * waited / seconds) : "–";
}

std::vector<ComparisonRow> result_rows(Runs runs) {
  std::vector<ComparisonRow> rows;
  const auto add = [&](const std::string& name, const auto& text_of) {
    ComparisonRow row{.cells = {name}};
    for (const ComparedRun& run : runs) row.cells.push_back(text_of(run.report));
    if (std::any_of(row.cells.begin() + 1, row.cells.end(),
                    [](const std::string& text) { return text != "–"; }))
      rows.push_back(std::move(row));
  };
  add("test accuracy", [](const TrainingReport& report) {
    return std::isfinite(report.test_accuracy) ? format_accuracy(report.test_accuracy, test_images(report))
                                               : "–";
  });
  add("test loss", [](const TrainingReport& report) { return format_decimals(report.test_loss, 4); });
  add(measured_on(runs) + " accuracy of the kept epoch", [](const TrainingReport& report) {
    const EpochRecord* const kept = kept_epoch(report);
    return kept && std::isfinite(kept->val_accuracy) ? format_accuracy(kept->val_accuracy, kept->val_count)
                                                     : "–";
  });
  add("kept epoch", [](const TrainingReport& report) {
    return report.best_epoch > 0 ? fmt::format("{} of {}", report.best_epoch, report.epochs.size()) : "–";
  });
  add("training time", [](const TrainingReport& report) { return format_duration(report.total_seconds); });
  add("an epoch (median)", [](const TrainingReport& report) {
    return format_duration(spread_of(report, &EpochRecord::seconds).median);
  });
  add("samples/s (median)", [](const TrainingReport& report) {
    return format_rounded(spread_of(report, &EpochRecord::samples_per_second).median);
  });
  add("waited for images", waited_text);
  // Where and by what they were made, as far as that differs.
  const auto add_differing = [&](const char* fact, std::vector<Fact> TrainingReport::*facts) {
    const auto value = [&](const ComparedRun& run) { return value_of(run.report.*facts, fact); };
    if (!same_for_all(runs, value))
      add(fact, [&](const TrainingReport& report) { return value_of(report.*facts, fact); });
  };
  for (const char* const fact : {"device", "engine"}) add_differing(fact, &TrainingReport::facts);
  for (const char* const fact : {"host", "version", "commit", "date"})
    add_differing(fact, &TrainingReport::provenance);
  return rows;
}

struct EpochColumn {
  const char* name;
  double EpochRecord::*figure;
  std::string (*text)(double);
};
constexpr EpochColumn accuracy_column{" accuracy", &EpochRecord::val_accuracy, percent};
// A name that begins with a space follows measured_on().
constexpr EpochColumn all_columns[] = {
    {"training loss", &EpochRecord::train_loss, [](double loss) { return format_decimals(loss, 4); }},
    {" loss", &EpochRecord::val_loss, [](double loss) { return format_decimals(loss, 4); }},
    accuracy_column,
    {"time", &EpochRecord::seconds, format_duration},
};

// One row per epoch, one cell per column and run.
std::vector<ComparisonRow> epoch_rows(Runs runs, std::span<const EpochColumn> columns) {
  std::set<int> epochs;
  for (const ComparedRun& run : runs)
    for (const EpochRecord& record : run.report.epochs) epochs.insert(record.epoch);
  std::vector<ComparisonRow> rows;
  for (const int epoch : epochs) {
    ComparisonRow row{.cells = {fmt::format("{}", epoch)}};
    for (const EpochColumn& column : columns)
      for (const ComparedRun& run : runs) {
        const auto record = std::ranges::find(run.report.epochs, epoch, &EpochRecord::epoch);
        row.cells.push_back(record == run.report.epochs.end() ? "" : column.text((*record).*column.figure));
        row.marked |= epoch == run.report.best_epoch;
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

// ---- output

// At most max_rows of them, evenly spaced, with the first, the last and the marked ones.
std::vector<ComparisonRow> thinned(std::vector<ComparisonRow> rows, std::size_t max_rows) {
  const std::size_t step = (rows.size() + max_rows - 1) / max_rows;
  std::vector<ComparisonRow> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || i + 1 == rows.size() || (i + 1) % step == 0 || rows[i].marked)
      kept.push_back(std::move(rows[i]));
  return kept;
}

std::vector<Plot> curves(Runs runs) {
  std::vector<Plot> plots;
  const auto add = [&](const std::string& title, Unit unit, double EpochRecord::*figure) {
    Plot plot{.title = title, .x_label = "epoch", .y_unit = unit};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Series series{.name = letter_of(i), .x = {}, .y = {}, .color = static_cast<int>(i)};
      for (const EpochRecord& record : runs[i].report.epochs) {
        if (!std::isfinite(record.*figure)) continue;
        series.x.push_back(record.epoch);
        series.y.push_back(record.*figure);
      }
      if (!series.y.empty()) plot.series.push_back(std::move(series));
    }
    if (!plot.series.empty()) plots.push_back(std::move(plot));
  };
  add("Accuracy, " + measured_on(runs), Unit::share, &EpochRecord::val_accuracy);
  add("Loss, training", Unit::none, &EpochRecord::train_loss);
  add("Loss, " + measured_on(runs), Unit::none, &EpochRecord::val_loss);
  add("Samples per second", Unit::none, &EpochRecord::samples_per_second);
  return plots;
}

}  // namespace

std::string comparison_text(Runs runs, const TextStyle& style) {
  std::vector<std::string> names;
  for (const ComparedRun& run : runs) names.push_back(run.name);
  std::vector<ComparisonRow> options = option_rows(runs);
  const std::size_t all_options = options.size();
  std::erase_if(options, [](const ComparisonRow& row) { return !row.marked; });
  std::string text = names_text(names) + "\n";
  text += comparison_table_text(with_letters("option", runs.size()), options, Align::left, style);
  text += fmt::format("{} options are equal.\n\n", all_options - options.size());
  text += comparison_table_text(with_letters("result", runs.size()), result_rows(runs), Align::left, style) +
          "\n";
  constexpr std::size_t max_rows = 40;
  const std::vector<ComparisonRow> epochs = epoch_rows(runs, std::span(&accuracy_column, 1));
  const std::vector<ComparisonRow> shown = thinned(epochs, max_rows);
  if (!shown.empty()) {
    text += fmt::format("Accuracy on the {} images\n", measured_on(runs));
    text += comparison_table_text(with_letters("epoch", runs.size()), shown, Align::right, style);
    if (shown.size() < epochs.size())
      text += fmt::format("{} of {} epochs; --html and --json have all.\n", shown.size(), epochs.size());
    text += "\n";
  }
  return text + findings_text(comparison_findings(runs), style);
}

std::string comparison_page(Runs runs, const std::vector<Fact>& made) {
  Page page{.title = fmt::format("{} training runs", runs.size()), .style = comparison_style()};
  for (std::size_t i = 0; i < runs.size(); ++i) page.facts.push_back({letter_of(i), runs[i].name});
  page.provenance = made;
  page.sections.push_back({.title = "Results",
                           .body_html = findings_html(comparison_findings(runs)) + plots_html(curves(runs)) +
                                        comparison_table_html("Results", with_letters("result", runs.size()),
                                                              result_rows(runs))});
  std::vector<ComparisonRow> options = option_rows(runs);
  std::stable_partition(options.begin(), options.end(), [](const ComparisonRow& row) { return row.marked; });
  for (ComparisonRow& row : options) row.cells[0] += row.marked ? " ≠" : "";
  page.sections.push_back(
      {.title = "Options",
       .body_html = "<p>Options that differ come first, marked with ≠.</p>\n" +
                    comparison_table_html("Options", with_letters("option", runs.size()), options)});
  std::vector<std::string> headers{"epoch"};
  for (const EpochColumn& column : all_columns)
    for (std::size_t i = 0; i < runs.size(); ++i)
      headers.push_back(
          fmt::format("{}{} {}", *column.name == ' ' ? measured_on(runs) : "", column.name, letter_of(i)));
  page.sections.push_back(
      {.title = "Epoch by epoch",
       .body_html = "<p>Epochs whose weights a run kept are in bold.</p>\n" +
                    comparison_table_html("Epochs", headers, epoch_rows(runs, all_columns), 0)});
  page.footer_html = "<p>Made by Tandem from the reports of the runs.</p>";
  return html_page(page);
}

std::string comparison_json(Runs runs, const std::vector<Fact>& made) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const ComparedRun& run : runs)
    list.push_back({{"name", run.name},
                    {"options", facts_json(run.options)},
                    {"report", Json::parse(to_json_text(run.report))}});
  const Json all{{"provenance", facts_json(made)},
                 {"differing_options", differing_options(runs)},
                 {"findings", comparison_findings(runs)},
                 {"runs", list}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tandem
