// The rows of a study as a table: grouped by case, without empty columns. Shared by the text and the HTML
// table so that both show the same.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tandem/report/study_report.h"

namespace tandem {

// What a row holds in a field; monostate when absent.
using StudyValue = std::variant<std::monostate, std::string, int, bool, double>;
StudyValue study_value(const StudyRow& row, const StudyField& field);

// The columns that have a value in at least one row, in reading order.
std::vector<StudyField> study_columns(const std::vector<StudyRow>& rows);

// The formatted value with its unit, together with the next field for pairs; empty when the row has none.
std::string study_cell(const StudyRow& row, const StudyField& field);

// Numbers are right-aligned.
bool is_number(const StudyField& field);

struct CaseRows {
  std::string case_name;
  std::vector<StudyRow> rows;
  int fastest = -1;  // index of the correct row with the lowest median; -1 when there is nothing to compare
};

// Cases in order of first appearance.
std::vector<CaseRows> rows_by_case(const std::vector<StudyRow>& rows);

// The fastest correct row of that case and version, for example of several thread counts; null if there is
// none.
const StudyRow* fastest_row(const std::vector<StudyRow>& rows, std::string_view case_name,
                            std::string_view version);

// Versions in order of first appearance. The index of a version is its color in plots and tables.
std::vector<std::string> versions_of(const std::vector<StudyRow>& rows);

// "parallel" or, when threads were swept, "parallel with 4 threads".
std::string version_label(const StudyRow& row);

// Whether any row was checked for agreement; accuracies are not.
bool is_compared(const std::vector<StudyRow>& rows);

int count_wrong(const std::vector<StudyRow>& rows);

// "WRONG", "FAILED" or, for a row that agrees, nothing.
std::string_view wrong_mark(const StudyRow& row);

// One sentence when all rows agree, otherwise one per disagreeing row, beginning with its mark.
std::vector<std::string> agreement_sentences(const std::vector<StudyRow>& rows);

}  // namespace tandem
