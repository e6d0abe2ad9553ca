#include "tandem/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/text/utf8.h"

namespace tandem {

std::string letter_of(std::size_t index) {
  expect(index < max_compared);
  return std::string(1, static_cast<char>('A' + index));
}

std::vector<std::string> with_letters(const std::string& first, std::size_t count) {
  std::vector<std::string> all{first};
  for (std::size_t i = 0; i < count; ++i) all.push_back(letter_of(i));
  return all;
}

std::vector<ComparisonRow> compared_facts(const std::vector<std::vector<Fact>>& facts) {
  std::vector<ComparisonRow> rows;
  for (const std::vector<Fact>& one : facts)
    for (const Fact& fact : one)
      if (std::ranges::none_of(rows, [&](const ComparisonRow& row) { return row.cells[0] == fact.name; }))
        rows.push_back({.cells = {fact.name}});
  for (ComparisonRow& row : rows) {
    for (const std::vector<Fact>& one : facts) {
      const auto found = std::ranges::find(one, row.cells[0], &Fact::name);
      row.cells.push_back(found == one.end() ? "–" : found->value);
    }
    row.marked = std::any_of(row.cells.begin() + 2, row.cells.end(),
                             [&](const std::string& value) { return value != row.cells[1]; });
  }
  return rows;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}  {}\n", letter_of(i), one_line(names[i]));
  return text;
}

std::string comparison_table_text(const std::vector<std::string>& headers,
                                  const std::vector<ComparisonRow>& rows, Align align,
                                  const TextStyle& style) {
  if (rows.empty()) return {};
  Table table;
  for (const std::string& header : headers) table.columns.push_back({header, align});
  for (const ComparisonRow& row : rows) {
    TableRow cells;
    for (const std::string& text : row.cells)
      cells.cells.push_back({text, row.marked ? Tone::strong : Tone::plain});
    table.rows.push_back(std::move(cells));
  }
  return format_table(table, style);
}

std::string comparison_table_html(const std::string& label, const std::vector<std::string>& headers,
                                  const std::vector<ComparisonRow>& rows, std::size_t first_number) {
  const auto kind = [&](std::size_t column) { return column < first_number ? "" : " class=\"number\""; };
  std::string html = "<table>\n<thead><tr>";
  for (std::size_t i = 0; i < headers.size(); ++i)
    html += fmt::format("<th{} scope=\"col\">{}</th>", kind(i), escape_html(headers[i]));
  html += "</tr></thead>\n<tbody>\n";
  for (const ComparisonRow& row : rows) {
    html += row.marked ? "<tr class=\"marked\">" : "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      html += fmt::format("<td{}>{}</td>", kind(i), escape_html(row.cells[i]));
    html += "</tr>\n";
  }
  constexpr std::size_t max_rows = 24;  // more scroll in a box of their own
  return scroll_box(label, html + "</tbody></table>", rows.size() > max_rows ? "tall" : "");
}

std::string findings_text(const std::vector<std::string>& findings, const TextStyle& style) {
  std::string text;
  for (const std::string& finding : findings) {
    const std::vector<std::string> lines = wrap(finding, style.width - 2);
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "• " : "  ") + lines[i] + "\n";
  }
  return text;
}

std::string findings_html(const std::vector<std::string>& findings) {
  std::string items;
  for (const std::string& finding : findings) items += fmt::format("<li>{}</li>\n", escape_html(finding));
  return fmt::format("<ul class=\"findings\">\n{}</ul>\n", items);
}

std::string comparison_style() {
  return R"(
tr.marked td{font-weight:650}
)";
}

}  // namespace tandem
