// Curves for a terminal: dots of Unicode braille, eight to a cell, or one character per cell without Unicode.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/curve.h"
#include "tandem/text/format_number.h"
#include "tandem/text/styled_line.h"

namespace tandem {

struct CellCurve {
  std::string label;  // at the right end of the curve
  Ink ink = Ink::first;
  std::vector<CurvePoint> points;  // from left to right
};

struct CellPlot {
  StyledLine title;
  std::string x_label;
  std::vector<CellCurve> curves;  // later ones are drawn over earlier ones
  double x_low = 0, x_high = 1;   // shown part
  Unit unit = Unit::none;         // of y
  bool log = false;               // y axis, if all values are above 0
};

// `height` lines of at most `width` columns (the title is not cut): the title, the curves with an axis at the
// left and labels at the right, and the axis below. Without room for them, the title alone.
std::vector<StyledLine> draw_cell_plot(const CellPlot& plot, int width, int height, bool utf8);

}  // namespace tandem
