#include "tandem/report/cell_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "tandem/report/axis.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr int min_columns = 8, min_rows = 3, label_columns = 6;

// What a dot is without Unicode.
char32_t letter_of(Ink ink) {
  switch (ink) {
    case Ink::second:
      return U'o';
    case Ink::third:
      return U'x';
    case Ink::fourth:
      return U'+';
    case Ink::fifth:
      return U'*';
    case Ink::sixth:
      return U'#';
    default:
      return U'.';
  }
}

// A grid of cells, each with dots and the ink of the dot that was drawn last.
class Canvas {
 public:
  Canvas(int columns, int rows, bool utf8)
      : columns_(columns),
        rows_(rows),
        dots_x_(utf8 ? 2 : 1),
        dots_y_(utf8 ? 4 : 1),
        cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)) {}

  int width() const { return columns_ * dots_x_; }
  int height() const { return rows_ * dots_y_; }

  // From the top left corner.
  void dot(int x, int y, Ink ink) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    constexpr std::array<std::array<std::uint8_t, 2>, 4> bits{
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    Cell& cell = cells_[static_cast<std::size_t>(y / dots_y_ * columns_ + x / dots_x_)];
    cell.bits |= bits[static_cast<std::size_t>(y % dots_y_)][static_cast<std::size_t>(x % dots_x_)];
    cell.ink = ink;
  }

  void line(std::pair<int, int> from, std::pair<int, int> to, Ink ink) {
    const auto [x0, y0] = from;
    const auto [x1, y1] = to;
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i)
      dot(x0 + (x1 - x0) * i / steps,
          y0 + static_cast<int>(std::lround(static_cast<double>(y1 - y0) * i / steps)), ink);
  }

  StyledLine row(int y) const {
    StyledLine line;
    for (int x = 0; x < columns_; ++x) {
      const Cell& cell = cells_[static_cast<std::size_t>(y * columns_ + x)];
      const char32_t one = letter_of(cell.ink);
      std::string text;
      append_utf8(text, cell.bits == 0 ? U' ' : dots_y_ == 1 ? one : char32_t{0x2800} + cell.bits);
      line.add(text, cell.bits == 0 ? Ink::plain : cell.ink);
    }
    return line;
  }

 private:
  struct Cell {
    std::uint8_t bits = 0;
    Ink ink = Ink::plain;
  };
  int columns_, rows_, dots_x_, dots_y_;
  std::vector<Cell> cells_;
};

struct Range {
  double low = 0, high = 0;
  bool any = false;

  void add(double value) {
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
};

// The points that are shown: those within the part, and on a logarithmic axis above 0.
std::vector<CurvePoint> visible(const CellCurve& curve, const CellPlot& plot, bool log) {
  std::vector<CurvePoint> points;
  for (const CurvePoint& point : curve.points)
    if (point.x >= plot.x_low && point.x <= plot.x_high && is_plottable(point.y, log))
      points.push_back(point);
  return points;
}

// Closer to the values than the outer ticks, because rows are few.
Axis y_axis(const Range& range, bool log, int ticks) {
  Axis axis = log ? log_axis(range.low, range.high, ticks) : linear_axis(range.low, range.high, ticks);
  if (range.low == range.high) return axis;
  if (log) {
    const double margin = std::min(std::pow(range.high / range.low, 0.03), 2.0);
    axis.low = range.low / margin;
    axis.high = range.high * margin;
  } else {
    const double margin = 0.03 * (range.high - range.low);
    axis.low = range.low - margin;
    axis.high = range.high + margin;
  }
  std::erase_if(axis.ticks, [&](double tick) { return tick < axis.low || tick > axis.high; });
  if (axis.ticks.empty()) axis.ticks = {range.low, range.high};
  return axis;
}

// One label per row.
std::vector<std::string> tick_labels(const Axis& axis, Unit unit, int rows) {
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  for (const double tick : axis.ticks) {
    const double share = std::clamp(axis.position(tick), 0.0, 1.0);
    if (!(share >= 0)) continue;
    const int row = rows - 1 - static_cast<int>(share * rows);
    labels[static_cast<std::size_t>(std::clamp(row, 0, rows - 1))] = format_tick(tick, unit);
  }
  return labels;
}

StyledLine x_axis_line(const CellPlot& plot, int left, int columns, int width) {
  std::string text(static_cast<std::size_t>(width), ' ');
  const std::string label = plot.x_label.size() < static_cast<std::size_t>(width) ? plot.x_label : "";
  const Axis axis = linear_axis(plot.x_low, plot.x_high, std::max(columns / 8, 2));
  int free_from = 0;  // labels do not touch
  const int end = width - (label.empty() ? 0 : static_cast<int>(label.size()) + 1);
  for (const double tick : axis.ticks) {
    if (tick < plot.x_low || tick > plot.x_high) continue;
    const std::string number = format_tick(tick);
    const int size = static_cast<int>(number.size());
    const int column =
        left + static_cast<int>((tick - plot.x_low) / (plot.x_high - plot.x_low) * (columns - 1)) - size / 2;
    if (column < free_from || column + size > end) continue;
    text.replace(static_cast<std::size_t>(column), number.size(), number);
    free_from = column + size + 1;
  }
  if (!label.empty()) text.replace(text.size() - label.size(), label.size(), label);
  return StyledLine(text, Ink::faint);
}

// The row of each curve's label: that of its last point, or a free one near it; -1: none.
std::vector<int> label_rows(const std::vector<int>& wanted, int rows) {
  std::vector<int> placed;
  for (const int row : wanted) {
    int found = -1;
    for (int distance = 0; distance < rows && found < 0 && row >= 0; ++distance)
      for (const int candidate : {row - distance, row + distance})
        if (found < 0 && candidate >= 0 && candidate < rows &&
            std::ranges::find(placed, candidate) == placed.end())
          found = candidate;
    placed.push_back(found);
  }
  return placed;
}

}  // namespace

std::vector<StyledLine> draw_cell_plot(const CellPlot& plot, int width, int height, bool utf8) {
  std::vector<StyledLine> lines;
  const auto finish = [&] {
    lines.resize(static_cast<std::size_t>(std::max(height, 0)));
    return lines;
  };
  lines.push_back(plot.title);
  const int rows = height - 2;
  std::vector<std::vector<CurvePoint>> points;
  Range range;
  const auto collect = [&](bool log) {
    points.clear();
    range = {};
    for (const CellCurve& curve : plot.curves) {
      points.push_back(visible(curve, plot, log));
      for (const CurvePoint& point : points.back()) range.add(point.y);
    }
  };
  bool log = plot.log;
  collect(log);
  if (log && !range.any) collect(log = false);
  if (rows < min_rows || !(plot.x_high > plot.x_low)) return finish();
  if (!range.any) {
    lines.resize(static_cast<std::size_t>(1 + rows / 2));
    lines.emplace_back("  nothing measured yet", Ink::faint);
    return finish();
  }
  const Axis axis = y_axis(range, log, log ? std::max(rows / 2, 6) : std::max(rows / 3, 2));
  const std::vector<std::string> ticks = tick_labels(axis, plot.unit, rows);
  int left = 0;
  for (const std::string& tick : ticks) left = std::max(left, display_width(tick));
  left += 2;  // the axis
  const int columns = width - left - label_columns;
  if (columns < min_columns) return finish();

  Canvas canvas(columns, rows, utf8);
  std::vector<int> ends;
  const auto dot = [](double share, int dots) {  // one that is not a number comes of extreme ranges
    return share > 0 ? static_cast<int>(std::lround(std::min(share, 1.0) * (dots - 1))) : 0;
  };
  const auto place_x = [&](double x) {
    return dot((x - plot.x_low) / (plot.x_high - plot.x_low), canvas.width());
  };
  const auto place = [&](const CurvePoint& point) {
    return std::pair(place_x(point.x), dot(1 - axis.position(point.y), canvas.height()));
  };
  for (std::size_t c = 0; c < points.size(); ++c) {
    const Ink ink = plot.curves[c].ink;
    std::optional<std::pair<int, int>> before;
    for (std::size_t i = 0; i < points[c].size();) {  // the points in one column of dots are one line
      const std::pair<int, int> first = place(points[c][i]);
      std::pair<int, int> last = first, low = first, high = first;
      for (++i; i < points[c].size() && place_x(points[c][i].x) == first.first; ++i) {
        last = place(points[c][i]);
        low = std::min(low, last);
        high = std::max(high, last);
      }
      canvas.line(before.value_or(first), first, ink);
      canvas.line(low, high, ink);
      before = last;
    }
    if (points[c].size() == 1)  // one dot is easily missed
      canvas.line({before->first - 1, before->second}, {before->first + 1, before->second}, ink);
    ends.push_back(before ? std::clamp(before->second * rows / canvas.height(), 0, rows - 1) : -1);
  }
  const std::vector<int> labels = label_rows(ends, rows);
  for (int row = 0; row < rows; ++row) {
    const std::string& tick = ticks[static_cast<std::size_t>(row)];
    StyledLine line;
    line.pad(left - 2 - display_width(tick)).add(tick, Ink::faint);
    line.add(tick.empty() ? " │" : " ┤", Ink::faint).add(canvas.row(row));
    for (std::size_t c = 0; c < labels.size(); ++c)
      if (labels[c] == row)
        line.add(" " + shorten(plot.curves[c].label, label_columns - 1), plot.curves[c].ink);
    lines.push_back(line);
  }
  lines.push_back(x_axis_line(plot, left, columns, width));
  return finish();
}

}  // namespace tandem
