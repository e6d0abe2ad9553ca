#include "tandem/study/study_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "tandem/report/comparison.h"
#include "tandem/report/facts_json.h"
#include "tandem/report/page.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/compare_rows.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Files = std::span<const ComparedStudies>;

// A measurement and what each file has of it.
struct Measurement {
  std::string study, case_name, version, device;
  std::vector<const StudyRow*> rows;  // null: the file does not have it

  bool is_of(const StudyReport& report, const StudyRow& row) const {
    return study == report.study && case_name == row.case_name && version == version_label(row) &&
           device == row.device;
  }
  int count() const {
    return static_cast<int>(std::ranges::count_if(rows, [](const StudyRow* row) { return row != nullptr; }));
  }
};

bool is_timed(const StudyRow& row) {
  return row.agrees && row.value("median_ms") > 0;
}

std::vector<Measurement> measurements(Files files) {
  std::vector<Measurement> all;
  for (std::size_t f = 0; f < files.size(); ++f)
    for (const StudyReport& report : files[f].studies)
      for (const StudyRow& row : report.rows) {
        if (!is_timed(row) || row.epoch) continue;
        auto found =
            std::ranges::find_if(all, [&](const Measurement& one) { return one.is_of(report, row); });
        if (found == all.end()) {
          all.push_back({report.study, row.case_name, version_label(row), row.device,
                         std::vector<const StudyRow*>(files.size(), nullptr)});
          found = all.end() - 1;
        }
        found->rows[f] = &row;
      }
  std::erase_if(all, [](const Measurement& one) { return one.count() < 2; });
  return all;
}

// How many times as fast file `f` is as the first; nullopt if one has no such row or the spreads overlap.
std::optional<double> speed(const Measurement& one, std::size_t f) {
  if (!one.rows[0] || !one.rows[f] || compare_speed(*one.rows[f], *one.rows[0]) == Speed::unclear) return {};
  return times_as_fast(*one.rows[f], *one.rows[0]);
}

std::vector<std::string> headers(Files files) {
  std::vector<std::string> all{"version", "device"};
  for (std::size_t f = 0; f < files.size(); ++f) all.push_back(letter_of(f));
  for (std::size_t f = 1; f < files.size(); ++f) all.push_back(fmt::format("{} : A", letter_of(f)));
  return all;
}

std::vector<std::string> cells(const Measurement& one) {
  std::vector<std::string> all{one.version, one.device};
  for (const StudyRow* const row : one.rows)
    all.push_back(row ? format_number(row->value("median_ms"), Unit::milliseconds) : "–");
  for (std::size_t f = 1; f < one.rows.size(); ++f) {
    const std::optional<double> ratio = speed(one, f);
    all.push_back(ratio ? format_number(*ratio, Unit::ratio) : one.rows[0] && one.rows[f] ? "≈" : "");
  }
  return all;
}

std::string name_of(const Measurement& one) {
  return fmt::format("{} {}, {} on {}", one.study, one.case_name, one.version, one.device);
}

std::vector<std::string> findings(Files files, const std::vector<Measurement>& all) {
  std::vector<std::string> sentences;
  for (std::size_t f = 1; f < files.size(); ++f) {
    int faster = 0, slower = 0, shared = 0;
    const Measurement *best = nullptr, *worst = nullptr;
    for (const Measurement& one : all) {
      if (!one.rows[0] || !one.rows[f]) continue;
      ++shared;
      const std::optional<double> ratio = speed(one, f);
      if (!ratio) continue;
      ++(*ratio > 1 ? faster : slower);
      if (*ratio > 1 && (!best || *ratio > *speed(*best, f))) best = &one;
      if (*ratio < 1 && (!worst || *ratio < *speed(*worst, f))) worst = &one;
    }
    std::string text =
        fmt::format("{} is faster than A in {} of {} measurements", letter_of(f), faster, shared);
    if (best) text += fmt::format(", up to {} as fast ({})", times_text(*speed(*best, f)), name_of(*best));
    text += fmt::format(", and slower in {}", slower);
    if (worst)
      text += fmt::format(", down to {} as fast ({})", times_text(*speed(*worst, f)), name_of(*worst));
    sentences.push_back(text + ".");
  }
  sentences.push_back("≈: the spreads of the repetitions overlap, or the medians differ by less than 5 %.");
  return sentences;
}

// What is known about each file's machine and build, as far as they differ.
std::vector<ComparisonRow> machine_rows(Files files) {
  std::vector<std::vector<Fact>> facts;
  for (const ComparedStudies& file : files) {
    facts.push_back(file.studies.empty() ? std::vector<Fact>{} : file.studies[0].machine);
    if (!file.studies.empty())
      facts.back().insert(facts.back().end(), file.studies[0].provenance.begin(),
                          file.studies[0].provenance.end());
  }
  std::vector<ComparisonRow> rows = compared_facts(facts);
  std::erase_if(rows, [](const ComparisonRow& row) { return !row.marked; });
  return rows;
}

std::vector<std::string> file_names(Files files) {
  std::vector<std::string> names;
  for (const ComparedStudies& file : files) names.push_back(file.name);
  return names;
}

}  // namespace

std::string study_comparison_text(Files files, const TextStyle& style) {
  const std::vector<Measurement> all = measurements(files);
  std::string text = names_text(file_names(files)) + "\n";
  text += comparison_table_text(with_letters("machine and build", files.size()), machine_rows(files),
                                Align::left, style);
  Table table;
  for (const std::string& header : headers(files))
    table.columns.push_back({header, table.columns.size() < 2 ? Align::left : Align::right});
  std::string heading;
  for (const Measurement& one : all) {
    if (const std::string now = one.study + " " + one.case_name; now != heading) {
      heading = now;
      table.rows.push_back({.heading = heading, .cells = {}});
    }
    TableRow row;
    for (const std::string& cell : cells(one)) row.cells.push_back({cell});
    table.rows.push_back(std::move(row));
  }
  return text + "\n" + format_table(table, style) + "\n" + findings_text(findings(files, all), style);
}

std::string study_comparison_page(Files files, const std::vector<Fact>& made) {
  const std::vector<Measurement> all = measurements(files);
  Page page{.title = fmt::format("Studies of {} files", files.size()), .style = comparison_style()};
  for (std::size_t f = 0; f < files.size(); ++f) page.facts.push_back({letter_of(f), files[f].name});
  page.provenance = made;
  std::vector<std::string> columns = headers(files);
  columns.insert(columns.begin(), {"study", "case"});
  std::vector<ComparisonRow> rows;
  for (const Measurement& one : all) {
    ComparisonRow row{.cells = cells(one)};
    row.cells.insert(row.cells.begin(), {one.study, one.case_name});
    rows.push_back(std::move(row));
  }
  page.sections.push_back({.title = "Medians, and speed relative to A",
                           .body_html = findings_html(findings(files, all)) +
                                        comparison_table_html("Measurements", columns, rows, 4)});
  if (const std::vector<ComparisonRow> machines = machine_rows(files); !machines.empty())
    page.sections.push_back({.title = "What differs between the machines and builds",
                             .body_html = comparison_table_html(
                                 "Machines", with_letters("machine and build", files.size()), machines)});
  page.footer_html = "<p>Made by Tandem from the files of the studies.</p>";
  return html_page(page);
}

std::string study_comparison_json(Files files, const std::vector<Fact>& made) {
  using Json = nlohmann::ordered_json;
  const std::vector<Measurement> all = measurements(files);
  Json rows = Json::array();
  for (const Measurement& one : all) {
    Json medians = Json::array(), speeds = Json::array();
    for (std::size_t f = 0; f < files.size(); ++f) {
      medians.push_back(one.rows[f] ? Json(one.rows[f]->value("median_ms")) : Json());
      const std::optional<double> ratio = speed(one, f);
      speeds.push_back(ratio ? Json(*ratio) : Json());
    }
    rows.push_back({{"study", one.study},
                    {"case", one.case_name},
                    {"version", one.version},
                    {"device", one.device},
                    {"median_ms", medians},
                    {"speed", speeds}});
  }
  const Json object{{"provenance", facts_json(made)},
                    {"files", file_names(files)},
                    {"findings", findings(files, all)},
                    {"rows", rows}};
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tandem
