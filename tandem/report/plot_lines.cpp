// Lines with a mark at every point. A spread is a vertical line at each of a few points, a band behind many.
#include <cmath>
#include <vector>

#include "tandem/report/axis.h"
#include "tandem/report/plot_canvas.h"

namespace tandem::detail {
namespace {

struct Area {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  Axis x_axis;
  Axis y_axis;

  double x_of(double x) const { return left + 8 + x_axis.position(x) * (right - left - 16); }
  double y_of(double y) const { return bottom - y_axis.position(y) * (bottom - top); }
};

bool is_shown(const Plot& plot, const Series& series, std::size_t i) {
  return is_plottable(series.x[i], plot.log_x) && is_plottable(series.y[i], plot.log_y);
}

bool shows_spread(const Plot& plot, const Series& series, std::size_t i) {
  return has_spread(series) && is_shown(plot, series, i) && is_plottable(low_of(series, i), plot.log_y) &&
         is_plottable(high_of(series, i), plot.log_y);
}

Axis value_axis(const Plot& plot, const Extent& values) {
  constexpr int max_ticks = 6;
  if (plot.log_y) return log_axis(values.min, values.max, max_ticks);
  // Include zero unless that would compress the lines too much.
  const bool from_zero = values.min > 0 && values.min < 0.4 * values.max;
  return linear_axis(from_zero ? 0 : values.min, values.max, max_ticks);
}

// The horizontal axis ends where the data ends. A sweep over few values has its ticks at those values.
Axis sweep_axis(const Plot& plot, const Extent& range, std::vector<double> positions) {
  constexpr int max_ticks = 8;
  Axis axis =
      plot.log_x ? log_axis(range.min, range.max, max_ticks) : linear_axis(range.min, range.max, max_ticks);
  if (range.min == range.max) {
    axis.ticks = {range.min};
    return axis;
  }
  axis.low = range.min;
  axis.high = range.max;
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  if (positions.size() <= 16) {
    axis.ticks = std::move(positions);
  } else {
    const bool all_integers =
        std::all_of(positions.begin(), positions.end(), [](double x) { return x == std::floor(x); });
    std::erase_if(axis.ticks, [&](double tick) {
      return tick < axis.low || tick > axis.high || (all_integers && tick != std::floor(tick));
    });
  }
  return axis;
}

void render_axes(Canvas& canvas, const Plot& plot, const Area& area) {
  for (const double tick : area.y_axis.ticks) {
    canvas.line("plot-grid", area.left, area.y_of(tick), area.right, area.y_of(tick));
    canvas.text(area.left - 8, area.y_of(tick) + 4, "plot-faint end", format_tick(tick, plot.y_unit));
  }
  canvas.line("plot-axis", area.left, area.bottom, area.right, area.bottom);
  double next_free_x = -1e9;
  for (const double tick : area.x_axis.ticks) {
    const std::string label = format_tick(tick);
    const double half = text_width(label) / 2;
    const double x = area.x_of(tick);
    if (x - half < next_free_x) continue;
    canvas.line("plot-axis", x, area.bottom, x, area.bottom + 4);
    canvas.text(std::min(x, canvas.width - half), area.bottom + 17, "plot-faint middle", label);
    next_free_x = x + half + 8;
  }
  canvas.bottom = area.bottom + 22;
  canvas.centered_label(plot.x_label, (area.left + area.right) / 2);
}

// Around points [begin, end), which all have a spread.
void render_band(Canvas& canvas, const Plot& plot, std::size_t s, std::size_t begin, std::size_t end,
                 const Area& area) {
  const Series& series = plot.series[s];
  std::string path;
  for (std::size_t i = begin; i < end; ++i)
    path += fmt::format("{}{:.1f} {:.1f}", i == begin ? "M" : "L", area.x_of(series.x[i]),
                        area.y_of(high_of(series, i)));
  for (std::size_t i = end; i-- > begin;)
    path += fmt::format("L{:.1f} {:.1f}", area.x_of(series.x[i]), area.y_of(low_of(series, i)));
  canvas.add(R"(<path class="plot-band c{}" d="{}Z"/>)", color_of(plot, s), path);
}

void render_spreads(Canvas& canvas, const Plot& plot, std::size_t s, const Area& area) {
  constexpr std::size_t max_lines = 15;
  const Series& series = plot.series[s];
  if (series.x.size() > max_lines) {
    for (std::size_t begin = 0; begin < series.x.size();) {
      std::size_t end = begin;
      while (end < series.x.size() && shows_spread(plot, series, end)) ++end;
      if (end > begin) render_band(canvas, plot, s, begin, end, area);
      begin = end + 1;
    }
    return;
  }
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!shows_spread(plot, series, i)) continue;
    const double x = area.x_of(series.x[i]);
    const double low = area.y_of(low_of(series, i)), high = area.y_of(high_of(series, i));
    canvas.line("plot-spread", x, low, x, high);
    for (const double y : {low, high}) canvas.line("plot-spread", x - 3, y, x + 3, y);
  }
}

void render_series(Canvas& canvas, const Plot& plot, std::size_t s, const Area& area) {
  constexpr std::size_t max_marked = 400;  // more marks would hide the line and bloat the file
  const Series& series = plot.series[s];
  std::string path;
  bool pen_down = false;  // lifted at dropped points, which leaves a gap
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool visible = is_shown(plot, series, i);
    if (visible)
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", area.x_of(series.x[i]),
                          area.y_of(series.y[i]));
    pen_down = visible;
  }
  if (path.empty()) return;
  render_spreads(canvas, plot, s, area);
  canvas.add(R"(<path class="plot-line{} c{}" d="{}"/>)", series.dashed ? " plot-dashed" : "",
             color_of(plot, s), path);
  if (series.dashed || series.x.size() > max_marked) return;
  const double radius = series.x.size() > 40 ? 2 : 3.5;
  for (std::size_t i = 0; i < series.x.size(); ++i)
    if (is_shown(plot, series, i))
      canvas.add(
          R"(<circle class="{} c{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>)",
          is_beyond(plot, series.x[i]) ? "plot-mark plot-hollow" : "plot-mark", color_of(plot, s),
          area.x_of(series.x[i]), area.y_of(series.y[i]), radius,
          escape_html(fmt::format("{}{}{} {}: {}", series.name, series.name.empty() ? "" : ", ", plot.x_label,
                                  format_tick(series.x[i]), value_text(plot, series, i))));
}

// A vertical line where the limit is, if the axis reaches it.
void render_limit(Canvas& canvas, const Plot& plot, const Area& area) {
  if (!plot.limit || !has_points_beyond(plot) || plot.limit->x < area.x_axis.low) return;
  const double x = area.x_of(plot.limit->x);
  canvas.line("plot-limit", x, area.top, x, area.bottom);
  const bool fits = x + 5 + text_width(plot.limit->name) < area.right;
  canvas.text(fits ? x + 5 : x - 5, area.top + 10, fits ? "plot-faint" : "plot-faint end", plot.limit->name);
}

}  // namespace

std::string render_lines(const Plot& plot, double width) {
  Extent xs, ys;
  std::vector<double> positions;
  for (const Series& series : plot.series)
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!is_shown(plot, series, i)) continue;
      xs.include(series.x[i]);
      positions.push_back(series.x[i]);
      ys.include(series.y[i]);
      if (!shows_spread(plot, series, i)) continue;
      ys.include(low_of(series, i));
      ys.include(high_of(series, i));
    }
  Canvas canvas{.width = width};
  render_title(canvas, plot);
  render_legend(canvas, plot);
  if (xs.empty) return render_empty(canvas, plot);

  Area area{.right = width - 16,
            .x_axis = sweep_axis(plot, xs, std::move(positions)),
            .y_axis = value_axis(plot, ys)};
  double label_width = 0;
  for (const double tick : area.y_axis.ticks)
    label_width = std::max(label_width, text_width(format_tick(tick, plot.y_unit)));
  area.left = plot_edge + label_width + 8;
  if (!plot.y_label.empty()) {
    canvas.bottom += 2;
    canvas.label(plot.y_label);
    canvas.bottom += 4;
  }
  area.top = canvas.bottom + 8;
  area.bottom = area.top + 230;
  render_axes(canvas, plot, area);
  render_limit(canvas, plot, area);
  for (std::size_t s = 0; s < plot.series.size(); ++s) render_series(canvas, plot, s, area);
  return close(canvas, plot);
}

}  // namespace tandem::detail
