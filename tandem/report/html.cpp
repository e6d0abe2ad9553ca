// The sections of a study page; page.cpp writes the shell.
#include "tandem/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/report/page.h"
#include "tandem/report/study_ratios.h"
#include "tandem/report/study_rows.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::string findings_html(const StudyReport& report) {
  std::string items;
  const char* mark = count_wrong(report.rows) > 0 ? " class=\"bad\"" : "";
  for (const std::string& sentence : agreement_sentences(report.rows))
    items += fmt::format("<li{}>{}</li>\n", mark, escape_html(sentence));
  for (const std::string& finding : report.findings)
    items += fmt::format("<li>{}</li>\n", escape_html(finding));
  return items.empty() ? items : fmt::format("<ul class=\"findings\">\n{}</ul>\n", items);
}

std::string cell_html(const StudyRow& row, const StudyField& column, int color) {
  std::string inside = escape_html(study_cell(row, column));
  if (column.key == "version") {
    inside =
        fmt::format(R"(<span class="dot c{}"></span>{}{})", color, inside,
                    row.agrees ? "" : fmt::format(R"( <span class="mark bad">{}</span>)", wrong_mark(row)));
  } else if (const std::optional<double> share = row.figures.find(column.key);
             column.style == CellStyle::bar && share && std::isfinite(*share)) {
    inside += fmt::format(R"(<span class="share c{}"><i style="width:{:.0f}%"></i></span>)", color,
                          100 * std::clamp(*share, 0.0, 1.0));
  }
  const char* classes = column.style == CellStyle::range_pair ? " class=\"number faint\""
                        : is_number(column)                   ? " class=\"number\""
                                                              : "";
  return fmt::format("<td{}>{}</td>", classes, inside);
}

// Whether the table needs the whole width of a printed sheet instead of one of its two columns.
bool is_wide(const std::vector<CaseRows>& groups, const std::vector<StudyField>& columns, bool with_case) {
  constexpr double letter = 4.25, padding = 3, dot = 10, printed_column = 348;  // pixels
  int case_letters = 0;
  for (const CaseRows& group : groups) case_letters = std::max(case_letters, display_width(group.case_name));
  double width = dot + (with_case ? padding + letter * case_letters : 0);
  for (const StudyField& column : columns) {
    int letters = display_width(column.header);
    for (const CaseRows& group : groups)
      for (const StudyRow& row : group.rows)
        letters = std::max(letters, display_width(study_cell(row, column)));
    width += padding + letter * letters;
  }
  return width > printed_column;
}

std::string table_html(const std::vector<StudyRow>& rows, const std::string& title) {
  if (rows.empty()) return {};
  const std::vector<StudyField> columns = study_columns(rows);
  const std::vector<std::string> versions = versions_of(rows);
  const std::vector<CaseRows> groups = rows_by_case(rows);
  // Cases of one row need no heading each: their name is the first column.
  const bool single =
      std::ranges::all_of(groups, [](const CaseRows& group) { return group.rows.size() == 1; });
  std::string html = "<table>\n<thead><tr>";
  if (single) html += "<th scope=\"col\">case</th>";
  for (const StudyField& column : columns)
    html +=
        fmt::format("<th{} scope=\"col\" title=\"{}\">{}</th>", is_number(column) ? " class=\"number\"" : "",
                    escape_html(column.meaning), escape_html(column.header));
  html += single ? "</tr></thead>\n<tbody>\n" : "</tr></thead>\n";
  for (const CaseRows& group : groups) {
    if (!single)
      html += fmt::format("<tbody>\n<tr><th class=\"group\" colspan=\"{}\" scope=\"rowgroup\">{}</th></tr>\n",
                          columns.size(), escape_html(group.case_name));
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const StudyRow& row = group.rows[i];
      const auto version = std::find(versions.begin(), versions.end(), row.version) - versions.begin();
      html += !row.agrees                            ? "<tr class=\"wrong\">"
              : static_cast<int>(i) == group.fastest ? "<tr class=\"fastest\">"
                                                     : "<tr>";
      if (single) html += fmt::format("<td>{}</td>", escape_html(group.case_name));
      for (const StudyField& column : columns)
        html += cell_html(row, column, static_cast<int>(version) % palette_size);
      html += "</tr>\n";
    }
    if (!single) html += "</tbody>\n";
  }
  // Tables of many epochs scroll in a box of their own; their plots show the same.
  constexpr std::size_t max_epoch_rows = 40;
  const bool is_tall = rows.front().epoch && rows.size() > max_epoch_rows;
  return scroll_box("Measurements: " + title, html + (single ? "</tbody></table>" : "</table>"),
                    is_wide(groups, columns, single) ? "wide"
                    : is_tall                        ? "tall"
                                                     : "");
}

// What the versions in the table are.
std::string versions_html(const StudyReport& report) {
  const std::vector<std::string> shown = versions_of(report.rows);
  std::string items;
  for (const Fact& version : report.versions) {
    const auto found = std::find(shown.begin(), shown.end(), version.name);
    if (found == shown.end()) continue;
    items += fmt::format("<div><dt><span class=\"dot c{}\"></span>{}</dt><dd>{}</dd></div>\n",
                         (found - shown.begin()) % palette_size, escape_html(version.name),
                         escape_html(version.value));
  }
  return items.empty() ? items : fmt::format("<dl class=\"versions\">\n{}</dl>\n", items);
}

std::string columns_note(std::span<const StudyReport> reports) {
  std::vector<StudyRow> rows;
  for (const StudyReport& report : reports) rows.insert(rows.end(), report.rows.begin(), report.rows.end());
  if (rows.empty()) return {};
  std::string items;
  for (const StudyField& column : study_columns(rows))
    items += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(column.header), escape_html(column.meaning));
  return "<details class=\"note\"><summary>What the columns mean</summary>\n<dl>\n" + items +
         "</dl></details>\n" +
         (is_compared(rows) ? "<p>The fastest correct version of each case is in bold.</p>\n" : "");
}

bool same_facts(const std::vector<Fact>& a, const std::vector<Fact>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Fact& x, const Fact& y) { return x.name == y.name && x.value == y.value; });
}

std::string with_unit(std::size_t count, const char* singular, const char* plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_page(std::span<const StudyReport> reports, const std::string& title) {
  Page page;
  page.title = title;
  if (!reports.empty()) page.facts = reports.front().machine;
  if (!reports.empty()) page.provenance = reports.front().provenance;
  std::size_t measurements = 0, modelled = 0;
  std::size_t wrong = 0;
  bool compared = reports.empty();
  for (const StudyReport& report : reports) {
    const int wrong_rows = count_wrong(report.rows);
    wrong += static_cast<std::size_t>(wrong_rows);
    for (const StudyRow& row : report.rows) ++(row.basis.empty() ? measurements : modelled);
    compared = compared || is_compared(report.rows);
    PageSection section;
    section.title = report.title.empty() ? report.study : report.title;
    section.verdict = wrong_rows > 0 ? Verdict::bad : Verdict::none;
    if (!report.introduction.empty())
      section.body_html += fmt::format("<p>{}</p>\n", escape_html(report.introduction));
    if (!same_facts(report.machine, page.facts)) section.body_html += facts_html(report.machine);
    section.body_html += findings_html(report) + versions_html(report) + plots_html(report.plots) +
                         table_html(report.rows, section.title) + ratios_html(report.rows);
    page.sections.push_back(std::move(section));
  }
  page.summary = fmt::format("{}, {}", with_unit(reports.size(), "study", "studies"),
                             with_unit(measurements, "measurement", "measurements"));
  page.summary +=
      !compared    ? "."
      : wrong == 0 ? ": all versions agree with the reference."
                   : ": " + with_unit(wrong, "result disagrees", "results disagree") + " with the reference.";
  if (measurements > 0 && compared) page.verdict = wrong == 0 ? Verdict::good : Verdict::bad;
  page.footer_html =
      columns_note(reports) +
      "<p>Times are medians; the thin lines in plots span the fastest and the slowest "
      "repetition. " +
      (modelled > 0 ? "What is called modelled was computed from measurements; every other" : "Every") +
      " figure was measured in the run that made this file.</p>";
  return html_page(page);
}

}  // namespace tandem
