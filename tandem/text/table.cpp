// Computes the column widths first, then writes the lines.
#include "tandem/text/table.h"

#include <algorithm>
#include <numeric>

#include "tandem/core/error.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

struct Layout {
  std::vector<int> widths;
  int gap = 2;

  int total() const {
    return std::accumulate(widths.begin(), widths.end(), 0) + gap * (static_cast<int>(widths.size()) - 1);
  }
};

std::string repeat(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Narrows the columns of one alignment, always the widest first, until the table fits `max_width` or all of
// them are `min_width` wide.
void shrink(Layout& layout, const Table& table, Align align, int min_width, int max_width) {
  std::vector<int>& widths = layout.widths;
  while (layout.total() > max_width) {
    int widest = -1;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (table.columns[i].align == align && widths[i] > min_width &&
          (widest < 0 || widths[i] > widths[widest]))
        widest = static_cast<int>(i);
    if (widest < 0) return;
    --widths[widest];
  }
}

Layout compute_layout(const Table& table, int max_width) {
  Layout layout;
  for (const TableColumn& column : table.columns)
    layout.widths.push_back(display_width(one_line(column.header)));
  for (const TableRow& row : table.rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      layout.widths[i] = std::max(layout.widths[i], display_width(one_line(row.cells[i].text)));
  if (layout.total() > max_width) layout.gap = 1;
  constexpr int readable = 8;
  shrink(layout, table, Align::left, readable, max_width);
  shrink(layout, table, Align::right, readable, max_width);
  shrink(layout, table, Align::left, 1, max_width);
  shrink(layout, table, Align::right, 1, max_width);
  expect(layout.total() <= max_width);
  return layout;
}

void append_line(std::string& text, const Table& table, const Layout& layout,
                 const std::vector<TableCell>& cells, const TextStyle& style) {
  std::string line;
  int blanks = 0;  // pending spaces, written only before more text so that no line ends in spaces
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string shown = shorten(one_line(cells[i].text), layout.widths[i]);
    const int fill = layout.widths[i] - display_width(shown);
    const bool right = table.columns[i].align == Align::right;
    blanks += (i == 0 ? 0 : layout.gap) + (right ? fill : 0);
    if (!shown.empty()) {
      line += std::string(static_cast<std::size_t>(blanks), ' ') + colorize(shown, cells[i].tone, style);
      blanks = 0;
    }
    if (!right) blanks += fill;
  }
  text += line + '\n';
}

}  // namespace

std::string colorize(const std::string& text, Tone tone, const TextStyle& style) {
  if (!style.color) return text;
  switch (tone) {
    case Tone::strong:
      return "\x1b[1m" + text + "\x1b[0m";
    case Tone::faint:
      return "\x1b[2m" + text + "\x1b[0m";
    case Tone::good:
      return "\x1b[32m" + text + "\x1b[0m";
    case Tone::bad:
      return "\x1b[1;31m" + text + "\x1b[0m";
    case Tone::plain:
      break;
  }
  return text;
}

std::string format_table(const Table& table, const TextStyle& style) {
  expect(!table.columns.empty());
  for (const TableRow& row : table.rows)
    expect(row.cells.empty() || row.cells.size() == table.columns.size());
  const bool grouped = std::any_of(table.rows.begin(), table.rows.end(),
                                   [](const TableRow& row) { return row.cells.empty(); });
  const int indent = grouped ? 2 : 0;
  const Layout layout = compute_layout(table, style.width - indent);
  const std::string margin(static_cast<std::size_t>(indent), ' ');

  std::vector<TableCell> header;
  for (const TableColumn& column : table.columns) header.push_back({column.header, Tone::faint});
  std::string text = margin;
  append_line(text, table, layout, header, style);
  text += colorize(repeat("─", indent + layout.total()), Tone::faint, style) + '\n';
  for (const TableRow& row : table.rows) {
    if (row.cells.empty()) {
      text += colorize(shorten(one_line(row.heading), style.width), Tone::strong, style) + '\n';
    } else {
      text += margin;
      append_line(text, table, layout, row.cells, style);
    }
  }
  return text;
}

}  // namespace tandem
