// The rows of a study as a table shows them: grouped by case, with the columns that hold something. Shared by
// the text and the HTML table, so that both say the same.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

enum class StudyField {
  version,
  device,
  threads,
  workers,
  epoch,
  accuracy,
  lead,
  median,
  range,
  with_copies,
  speedup,
  samples,
  waited,
  efficiency,
  gb,
  gflop,
  share
};

struct StudyColumn {
  StudyField field;
  std::string header;
  std::string meaning;  // a phrase that explains the figure
  bool number;          // aligned right
};

// The columns that at least one row fills, in reading order.
std::vector<StudyColumn> study_columns(const std::vector<StudyRow>& rows);

// The figure with its unit; empty where the row has none.
std::string study_cell(const StudyRow& row, StudyField field);

struct CaseRows {
  std::string case_name;
  std::vector<StudyRow> rows;
  int fastest = -1;  // the correct row with the least median, when there is one to compare it with
};

// What tables show: cases in order of first appearance.
std::vector<CaseRows> rows_by_case(const std::vector<StudyRow>& rows);

// Versions in order of first appearance: the number of a version is its colour in plots and tables.
std::vector<std::string> versions_of(const std::vector<StudyRow>& rows);

// "parallel" or, when threads were swept, "parallel with 4 threads".
std::string version_label(const StudyRow& row);

// Whether any row could have been wrong: an accuracy is what it is.
bool is_compared(const std::vector<StudyRow>& rows);

int count_wrong(const std::vector<StudyRow>& rows);

// One sentence when all agree, otherwise one for each row that does not, beginning with WRONG.
std::vector<std::string> agreement_sentences(const std::vector<StudyRow>& rows);

}  // namespace tandem
