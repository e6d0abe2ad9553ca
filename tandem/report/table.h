// A table for terminals: headers, left and right alignment, group headings, light rules, and colour on
// request.
#pragma once

#include <string>
#include <vector>

namespace tandem {

enum class Align { left, right };
enum class Tone { plain, strong, faint, good, bad };

// How text may look; whoever prints decides about colour (isatty, NO_COLOR).
struct TextStyle {
  int width = 100;
  bool colour = false;
};

struct TableColumn {
  std::string header;
  Align align = Align::left;
};

struct TableCell {
  std::string text;
  Tone tone = Tone::plain;
};

// Either a heading over the rows that follow, or a cell a column.
struct TableRow {
  std::string heading;
  std::vector<TableCell> cells;
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
};

// Lines that each end in '\n', none wider than style.width: left-aligned columns are shortened when they must
// be, the widest first, then the right-aligned ones. A width no table of so many columns can keep is a bug.
std::string format_table(const Table& table, const TextStyle& style = {});

// `text` in the tone's colour, or as it is without colour.
std::string toned(const std::string& text, Tone tone, const TextStyle& style);

}  // namespace tandem
