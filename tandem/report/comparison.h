// The parts of a comparison of training runs or studies: letters for what is compared, tables with marked
// rows, and sentences, as text and as HTML.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/text/table.h"

namespace tandem {

// What is compared is called A, B, … in the order in which it is given. There are as many letters as colors.
inline constexpr std::size_t max_compared = 8;
std::string letter_of(std::size_t index);
// The headers of a table: `first`, then the letters.
std::vector<std::string> with_letters(const std::string& first, std::size_t count);

// One cell per column; the first one names the row.
struct ComparisonRow {
  std::vector<std::string> cells;
  bool marked = false;  // shown in bold
};

// One row per name, in the order of first appearance, with the value of each; "–" where one has no such fact.
// Rows whose values differ are marked. Needs the facts of at least two.
std::vector<ComparisonRow> compared_facts(const std::vector<std::vector<Fact>>& facts);

// "A  runs/mnist-mlp-1", one line each.
std::string names_text(const std::vector<std::string>& names);

// Empty without rows.
std::string comparison_table_text(const std::vector<std::string>& headers,
                                  const std::vector<ComparisonRow>& rows, Align align,
                                  const TextStyle& style);
// Columns from `first_number` on are right-aligned; by default none is.
std::string comparison_table_html(const std::string& label, const std::vector<std::string>& headers,
                                  const std::vector<ComparisonRow>& rows,
                                  std::size_t first_number = std::string::npos);

std::string findings_text(const std::vector<std::string>& findings, const TextStyle& style);
std::string findings_html(const std::vector<std::string>& findings);

// The style sheet (CSS) of the tables.
std::string comparison_style();

}  // namespace tandem
