#include "tandem/report/run_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "tandem/report/comparison.h"
#include "tandem/report/interval.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/report/training_json.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Runs = std::span<const ComparedRun>;

// ---- figures of one run

const EpochRecord* kept_epoch(const TrainingReport& report) {
  const auto found = std::ranges::find(report.epochs, report.best_epoch, &EpochRecord::epoch);
  return found == report.epochs.end() ? nullptr : &*found;
}

std::int64_t test_images(const TrainingReport& report) {
  return std::accumulate(report.confusion.begin(), report.confusion.end(), std::int64_t{0});
}

// The test images of each class: those of other data differ, even if they are as many.
std::vector<std::int64_t> class_counts(const TrainingReport& report) {
  std::vector<std::int64_t> counts(report.classes.size());
  for (std::size_t i = 0; i < report.confusion.size(); ++i) counts[i / counts.size()] += report.confusion[i];
  return counts;
}

struct Spread {
  double median = not_measured, min = not_measured, max = not_measured;
};

Spread spread_of(const TrainingReport& report, double EpochRecord::*figure) {
  std::vector<double> values;
  for (const EpochRecord& record : report.epochs)
    if (std::isfinite(record.*figure)) values.push_back(record.*figure);
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return {.median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
          .min = values.front(),
          .max = values.back()};
}

std::string value_of(const std::vector<Fact>& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? "–" : found->value;
}

template <class Key>
bool same_for_all(Runs runs, const Key& key) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const ComparedRun& run) { return key(run) == key(runs[0]); });
}

// What the figures after each epoch were measured on: the test images if a run had no others.
std::string measured_on(Runs runs) {
  return same_for_all(runs, [](const ComparedRun& run) { return run.report.val_name; })
             ? runs[0].report.val_name
             : "validation or test";
}

// ---- tables

std::vector<ComparisonRow> option_rows(Runs runs) {
  std::vector<std::vector<Fact>> options;
  for (const ComparedRun& run : runs) options.push_back(run.options);
  return compared_facts(options);
}

std::vector<std::string> differing_options(Runs runs) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : option_rows(runs))
    if (row.differs) names.push_back(row.cells[0]);
  return names;
}

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
        row.differs |= epoch == run.report.best_epoch;
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

// ---- sentences

std::string letters(Runs runs, const auto& chosen) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (chosen(i)) all.push_back(letter_of(i));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string option_finding(Runs runs) {
  const std::vector<std::string> names = differing_options(runs);
  if (names.empty()) return "All options are equal.";
  return fmt::format("{} {}: {}.", names.size(), names.size() == 1 ? "option differs" : "options differ",
                     fmt::join(names, ", "));
}

std::string accuracy_finding(Runs runs) {
  std::vector<std::size_t> tested;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::isfinite(runs[i].report.test_accuracy) && test_images(runs[i].report) > 0) tested.push_back(i);
  if (tested.size() < 2) return {};
  const auto on = [&](std::size_t i) {
    return fmt::format("{} {} images of {}", format_count(test_images(runs[i].report)),
                       runs[i].report.test_name, one_line(value_of(runs[i].options, "data")));
  };
  const auto same_images = [&](std::size_t i) {
    return value_of(runs[i].options, "data") == value_of(runs[tested[0]].options, "data") &&
           runs[i].report.test_name == runs[tested[0]].report.test_name &&
           runs[i].report.classes == runs[tested[0]].report.classes &&
           class_counts(runs[i].report) == class_counts(runs[tested[0]].report);
  };
  for (const std::size_t i : tested)
    if (!same_images(i))
      return fmt::format("{} was tested on {}, {} on {}: their accuracies are not compared.",
                         letter_of(tested[0]), on(tested[0]), letter_of(i), on(i));
  const std::size_t best =
      *std::ranges::max_element(tested, {}, [&](std::size_t i) { return runs[i].report.test_accuracy; });
  const auto interval = [&](std::size_t i) {
    return wilson_interval(runs[i].report.test_accuracy, test_images(runs[i].report));
  };
  const auto overlaps = [&](std::size_t i) {
    return i != best && std::ranges::find(tested, i) != tested.end() &&
           interval(i).high >= interval(best).low;
  };
  const std::string close = letters(runs, overlaps);
  const std::string figure =
      fmt::format("{} has the highest test accuracy: {}", letter_of(best),
                  describe_accuracy(runs[best].report.test_accuracy, test_images(runs[best].report)));
  return close.empty()
             ? figure + ". No other interval overlaps with it."
             : fmt::format("{}. It overlaps with that of {}: the difference may be chance.", figure, close);
}

std::string time_finding(Runs runs) {
  std::vector<Spread> times;
  for (const ComparedRun& run : runs) times.push_back(spread_of(run.report, &EpochRecord::seconds));
  std::size_t fast = 0, slow = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!(times[i].median > 0)) return {};
    if (times[i].median < times[fast].median) fast = i;
    if (times[i].median > times[slow].median) slow = i;
  }
  const auto text = [&](std::size_t i) {
    return fmt::format("{} ({})", format_number(1e3 * times[i].median, Unit::milliseconds),
                       format_ms_range(1e3 * times[i].min, 1e3 * times[i].max));
  };
  if (times[fast].max >= times[slow].min)
    return fmt::format("The times of an epoch overlap: from {} in {} to {} in {}.", text(fast),
                       letter_of(fast), text(slow), letter_of(slow));
  return fmt::format("An epoch of {} takes {}, {:.3g} times as long as one of {}, {}.", letter_of(slow),
                     text(slow), times[slow].median / times[fast].median, letter_of(fast), text(fast));
}

// ---- output

std::vector<std::string> with_letters(const std::string& first, Runs runs) {
  std::vector<std::string> all{first};
  for (std::size_t i = 0; i < runs.size(); ++i) all.push_back(letter_of(i));
  return all;
}

// At most max_rows of them, evenly spaced, with the first, the last and the marked ones.
std::vector<ComparisonRow> thinned(std::vector<ComparisonRow> rows, std::size_t max_rows) {
  const std::size_t step = (rows.size() + max_rows - 1) / max_rows;
  std::vector<ComparisonRow> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || i + 1 == rows.size() || (i + 1) % step == 0 || rows[i].differs)
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

std::vector<std::string> comparison_findings(Runs runs) {
  std::vector<std::string> findings{option_finding(runs)};
  if (!same_for_all(runs, [](const ComparedRun& run) { return run.data; }))
    findings.push_back(
        "The runs did not train and validate on the same images: their accuracies after each "
        "epoch are not those of one task.");
  findings.push_back(accuracy_finding(runs));
  findings.push_back(time_finding(runs));
  if (!same_for_all(runs, [](const ComparedRun& run) { return value_of(run.report.provenance, "host"); }))
    findings.push_back("They ran on different machines.");
  const std::string unfinished =
      letters(runs, [&](std::size_t i) { return !std::isfinite(runs[i].report.test_accuracy); });
  if (!unfinished.empty()) findings.push_back(fmt::format("Not finished: {}.", unfinished));
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const std::string& warning : runs[i].report.warnings)
      findings.push_back(fmt::format("Warning of {}: {}.", letter_of(i), one_line(warning)));
  std::erase(findings, "");
  return findings;
}

std::string comparison_text(Runs runs, const TextStyle& style) {
  std::vector<std::string> names;
  for (const ComparedRun& run : runs) names.push_back(run.name);
  std::vector<ComparisonRow> options = option_rows(runs);
  const std::size_t all_options = options.size();
  std::erase_if(options, [](const ComparisonRow& row) { return !row.differs; });
  std::string text = names_text(names) + "\n";
  text += comparison_table_text(with_letters("option", runs), options, Align::left, style);
  text += fmt::format("{} options are equal.\n\n", all_options - options.size());
  text += comparison_table_text(with_letters("result", runs), result_rows(runs), Align::left, style) + "\n";
  constexpr std::size_t max_rows = 40;
  const std::vector<ComparisonRow> epochs = epoch_rows(runs, std::span(&accuracy_column, 1));
  const std::vector<ComparisonRow> shown = thinned(epochs, max_rows);
  if (!shown.empty()) {
    text += fmt::format("Accuracy on the {} images\n", measured_on(runs));
    text += comparison_table_text(with_letters("epoch", runs), shown, Align::right, style);
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
  constexpr std::size_t no_numbers = 99;
  page.sections.push_back({.title = "Results",
                           .body_html = findings_html(comparison_findings(runs)) + plots_html(curves(runs)) +
                                        comparison_table_html("Results", with_letters("result", runs),
                                                              result_rows(runs), no_numbers)});
  std::vector<ComparisonRow> options = option_rows(runs);
  std::ranges::stable_partition(options, [](const ComparisonRow& row) { return row.differs; });
  for (ComparisonRow& row : options) row.cells[0] += row.differs ? " ≠" : "";
  page.sections.push_back(
      {.title = "Options",
       .body_html = "<p>Options that differ come first, marked with ≠.</p>\n" +
                    comparison_table_html("Options", with_letters("option", runs), options, no_numbers)});
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
  const auto facts = [](const std::vector<Fact>& all) {
    Json object = Json::object();
    for (const Fact& fact : all) object[fact.name] = fact.value;
    return object;
  };
  Json list = Json::array();
  for (const ComparedRun& run : runs)
    list.push_back({{"name", run.name},
                    {"options", facts(run.options)},
                    {"report", Json::parse(to_json_text(run.report))}});
  const Json all{{"provenance", facts(made)},
                 {"differing_options", differing_options(runs)},
                 {"findings", comparison_findings(runs)},
                 {"runs", list}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tandem
