// Tables for terminals: headers, left and right alignment, group headings, rules, optional color.
#pragma once

#include <string>
#include <vector>

namespace tandem {

enum class Align { left, right };
enum class Tone { plain, strong, faint, good, bad };

// The caller decides about color (isatty, NO_COLOR).
struct TextStyle {
  int width = 100;
  bool color = false;
};

struct TableColumn {
  std::string header;
  Align align = Align::left;
};

struct TableCell {
  std::string text;
  Tone tone = Tone::plain;
};

// Either a heading above the rows that follow, or one cell per column.
struct TableRow {
  std::string heading;
  std::vector<TableCell> cells;
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
};

// Lines that each end in '\n', none wider than style.width. Text that does not fit is shortened: left-aligned
// columns first, starting with the widest, then right-aligned ones. style.width must leave at least one
// character per column.
std::string format_table(const Table& table, const TextStyle& style = {});

// `text` in the color of its tone; unchanged when style.color is off.
std::string colorize(const std::string& text, Tone tone, const TextStyle& style);

}  // namespace tandem
