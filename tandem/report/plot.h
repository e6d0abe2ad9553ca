// Plots as plain data, and the SVG that shows them: lines for sweeps and training curves, horizontal bars for
// versions side by side. The SVG stands inside an HTML page, needs no script or font, and takes its colours
// from plot_style(), which the page includes once; every point and bar tells its value on hover.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/figures.h"

namespace tandem {

// In a line plot, points (x[i], y[i]) in drawing order; in a bar plot, y[i] belongs to categories[i] and x is
// empty.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  bool dashed = false;          // a line to compare with, not a measurement
  std::optional<int> colour{};  // number in the palette; its position in the plot unless given
};

enum class PlotKind { bars, lines };

// y is always the measured value, also where bars lie and it runs to the right.
struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  PlotKind kind = PlotKind::lines;
  bool log_x = false;
  bool log_y = false;
  Unit y_unit = Unit::none;
  std::vector<std::string> categories;  // bars only
  std::vector<Series> series;
};

// Values that have no place on the axis (not finite, beyond 1e300, not positive on a logarithmic one) are
// dropped.
std::string svg(const Plot& plot);

// The style sheet (CSS) of all plots, light and dark.
std::string plot_style();

// How many colours plot_style() knows; series beyond begin again. Class "c0" … "c7" sets the CSS variable
// --c.
inline constexpr int palette_size = 8;

}  // namespace tandem
