// Fills the generic table (text/table.h) with the rows of a study.
#include "tandem/report/study_text.h"

#include <algorithm>

#include "tandem/report/study_rows.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

Table study_table(const std::vector<StudyRow>& rows) {
  const std::vector<StudyField> columns = study_columns(rows);
  const bool any_wrong = count_wrong(rows) > 0;
  Table table;
  for (const StudyField& column : columns)
    table.columns.push_back({std::string(column.header), is_number(column) ? Align::right : Align::left});
  if (any_wrong) table.columns.push_back({"", Align::right});

  for (const CaseRows& group : rows_by_case(rows)) {
    table.rows.push_back({group.case_name, {}});
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const StudyRow& row = group.rows[i];
      const Tone tone = !row.agrees                            ? Tone::bad
                        : static_cast<int>(i) == group.fastest ? Tone::good
                                                               : Tone::plain;
      std::vector<TableCell> cells;
      for (const StudyField& column : columns)
        cells.push_back(
            {study_cell(row, column), column.style == CellStyle::range_pair ? Tone::faint : tone});
      if (any_wrong) cells.push_back({std::string(wrong_mark(row)), Tone::bad});
      table.rows.push_back({"", std::move(cells)});
    }
  }
  return table;
}

std::string paragraph(const std::string& content, const std::string& bullet, Tone tone,
                      const TextStyle& style) {
  std::string text;
  const int indent = display_width(bullet);
  std::string margin = bullet;
  for (const std::string& line : wrap(content, style.width - indent)) {
    text += margin + colorize(line, tone, style) + '\n';
    margin = std::string(static_cast<std::size_t>(indent), ' ');
  }
  return text;
}

}  // namespace

std::string study_text(const StudyReport& report, const TextStyle& style) {
  std::string text = paragraph(report.title, "", Tone::strong, style);
  text += paragraph(report.introduction, "", Tone::plain, style);
  if (!report.rows.empty()) text += '\n' + format_table(study_table(report.rows), style);
  text += '\n';
  for (const std::string& sentence : agreement_sentences(report.rows))
    text += paragraph(sentence, "• ", count_wrong(report.rows) > 0 ? Tone::bad : Tone::plain, style);
  for (const std::string& finding : report.findings) text += paragraph(finding, "• ", Tone::plain, style);
  return text;
}

std::string machine_text(const std::vector<Fact>& machine, const TextStyle& style) {
  std::string words;
  for (const Fact& fact : machine) words += (words.empty() ? "" : " · ") + fact.name + " " + fact.value;
  return paragraph(words, "", Tone::faint, style);
}

}  // namespace tandem
