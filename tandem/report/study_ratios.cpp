#include "tandem/report/study_ratios.h"

#include <fmt/format.h>

#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/report/study_rows.h"

namespace tandem {
namespace {

constexpr std::size_t min_versions = 3, max_versions = 20;

std::vector<const StudyRow*> measured_rows(const CaseRows& group) {
  std::vector<const StudyRow*> measured;
  for (const StudyRow& row : group.rows)
    if (row.agrees && row.basis.empty() && row.value("median_ms") > 0 && !row.epoch) measured.push_back(&row);
  return measured;
}

std::string ratio_text(double ratio) {
  return fmt::format("×{}", format_number(ratio));
}

std::string ratio_table(const CaseRows& group, const std::vector<const StudyRow*>& rows) {
  std::string html =
      fmt::format("<table>\n<thead><tr><th scope=\"col\">{}</th>", escape_html(group.case_name));
  for (const StudyRow* row : rows)
    html += fmt::format("<th class=\"number\" scope=\"col\">{}</th>", escape_html(version_label(*row)));
  html += "</tr></thead>\n<tbody>\n";
  for (const StudyRow* row : rows) {
    html += fmt::format("<tr><td>{}</td>", escape_html(version_label(*row)));
    for (const StudyRow* other : rows)
      html +=
          fmt::format("<td class=\"number\">{}</td>",
                      row == other ? "" : ratio_text(other->value("median_ms") / row->value("median_ms")));
    html += "</tr>\n";
  }
  return html + "</tbody></table>";
}

}  // namespace

std::string ratios_html(const std::vector<StudyRow>& rows) {
  std::string tables;
  for (const CaseRows& group : rows_by_case(rows)) {
    const std::vector<const StudyRow*> measured = measured_rows(group);
    if (measured.size() < min_versions || measured.size() > max_versions) continue;
    tables += scroll_box("Ratios: " + group.case_name, ratio_table(group, measured), "");
  }
  if (tables.empty()) return {};
  return "<details class=\"note\"><summary>Any two versions: how many times as fast the row is as the "
         "column</summary>\n" +
         tables + "</details>\n";
}

}  // namespace tandem
