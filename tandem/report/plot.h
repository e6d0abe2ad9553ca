// Plots as plain data and their rendering as SVG: lines for sweeps and training curves, horizontal bars for
// comparing versions, which are dots on a logarithmic axis. The SVG is embedded in an HTML page, needs no
// script or font, and takes its colors from plot_style(), which the page includes once. Every point and bar
// shows its value on hover.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/text/format_number.h"

namespace tandem {

// In a line plot, the points (x[i], y[i]) in the order they are connected. In a bar plot, y[i] belongs to
// categories[i] and x is empty. low and high are the ends of the spread of each y, or both empty.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low{};
  std::vector<double> high{};
  bool dashed = false;         // a reference line, not a measurement
  std::optional<int> color{};  // palette index; by default the index of the series
};

enum class PlotKind { bars, lines };

// Where a sweep exceeds what the machine has, such as CPUs: a vertical line at x; marks beyond it are hollow.
struct PlotLimit {
  double x = 0;
  std::string name;    // beside the line: "2 CPUs"
  std::string beyond;  // in the legend: "oversubscribed: more than 2 CPUs"
};

// y is always the measured value, also for horizontal bars, where it grows to the right.
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
  std::optional<PlotLimit> limit{};  // lines only
};

// Widths in units of the SVG, in which text is 12 high: half of a desktop page, and a phone.
inline constexpr double wide_plot = 480, narrow_plot = 340;

// Values that cannot be plotted (not finite, beyond 1e300, or not positive on a logarithmic axis) are
// dropped. The class of the element is "wide" or "narrow"; plot_style() shows the one that fits the screen.
std::string svg(const Plot& plot, double width = wide_plot);

// The style sheet (CSS) of all plots, light and dark.
std::string plot_style();

// The number of colors in plot_style(); further series reuse them. Class "c0" … "c13" sets the CSS variable
// --c.
inline constexpr int palette_size = 14;

}  // namespace tandem
