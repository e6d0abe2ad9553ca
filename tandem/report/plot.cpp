// Renders a Plot as SVG. The width is 480 units, about that of a phone or half a desktop page, so that text
// stays readable on both. Text widths are estimated from character counts because no font metrics are
// available.
#include "tandem/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/report/axis.h"
#include "tandem/report/html.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr double width = 480;
constexpr double edge = 4;
constexpr double line_height = 18;

double text_width(std::string_view text) {
  return 6.8 * display_width(text);
}

// The SVG elements so far and the y coordinate of their lower edge.
struct Canvas {
  std::string body;
  double bottom = edge;

  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(body), text, std::forward<Args>(args)...);
  }

  void text(double x, double y, std::string_view classes, std::string_view content) {
    add(R"(<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>)", classes, x, y, escape_html(content));
  }

  void line(std::string_view classes, double x1, double y1, double x2, double y2) {
    add(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", classes, x1, y1, x2, y2);
  }
};

int color_of(const Plot& plot, std::size_t i) {
  const int color = plot.series[i].color.value_or(static_cast<int>(i));
  return ((color % palette_size) + palette_size) % palette_size;
}

void render_title(Canvas& canvas, const Plot& plot) {
  for (const std::string& line : wrap(plot.title, 54)) {
    canvas.bottom += line_height;
    canvas.text(edge, canvas.bottom - 4, "plot-title", line);
  }
}

void render_legend(Canvas& canvas, const Plot& plot) {
  if (plot.series.size() < 2) return;
  double x = edge;
  canvas.bottom += line_height + 2;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    const std::string name = shorten(one_line(series.name), 58);
    const double needed = 18 + text_width(name) + 14;
    if (x > edge && x + needed > width) {
      x = edge;
      canvas.bottom += line_height;
    }
    const double y = canvas.bottom - 4;
    if (plot.kind == PlotKind::bars)
      canvas.add(R"(<rect class="plot-bar c{}" x="{:.1f}" y="{:.1f}" width="11" height="11" rx="2"/>)",
                 color_of(plot, i), x, y - 10);
    else
      canvas.add(R"(<line class="plot-line{} c{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
                 series.dashed ? " plot-dashed" : "", color_of(plot, i), x, y - 4, x + 13, y - 4);
    canvas.text(x + 18, y, "plot-text", name);
    x += needed;
  }
}

std::string close(const Canvas& canvas, const Plot& plot) {
  return fmt::format(
      R"(<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>)",
      width, std::ceil(canvas.bottom + edge), escape_html(plot.title), canvas.body);
}

struct Extent {
  double min = 0;
  double max = 0;
  bool empty = true;

  void include(double value) {
    min = empty ? value : std::min(min, value);
    max = empty ? value : std::max(max, value);
    empty = false;
  }
};

std::string render_empty(Canvas& canvas, const Plot& plot) {
  canvas.bottom += 70;
  canvas.text(width / 2, canvas.bottom - 30, "plot-faint middle", "nothing to show");
  return close(canvas, plot);
}

// ---- bars

// The axis ends at the longest bar; its value label is placed to the right, where space is reserved.
Axis bar_axis(const Plot& plot, const Extent& values) {
  constexpr int max_ticks = 7;
  // A logarithmic axis starts clearly below the minimum so that every bar has a visible length.
  Axis axis = plot.log_y ? log_axis(std::max(values.min * 0.7, 1e-300), values.max, max_ticks)
                         : linear_axis(std::min(values.min, 0.0), std::max(values.max, 0.0), max_ticks);
  if (values.max > 0) axis.high = values.max;
  std::erase_if(axis.ticks, [&](double tick) { return tick > axis.high; });
  return axis;
}

std::string render_bars(const Plot& plot) {
  Extent values;
  double label_width = 0;
  double value_width = 0;
  for (const Series& series : plot.series) {
    expect(series.y.size() == plot.categories.size());
    for (const double value : series.y) {
      if (!is_plottable(value, plot.log_y)) continue;
      values.include(value);
      value_width = std::max(value_width, text_width(format_number(value, plot.y_unit)));
    }
  }
  for (const std::string& category : plot.categories)
    label_width = std::max(label_width, text_width(category));

  Canvas canvas;
  render_title(canvas, plot);
  render_legend(canvas, plot);
  if (values.empty) return render_empty(canvas, plot);

  // Short category names go left of their bars, long ones above.
  const bool above = label_width > 130;
  const double left = above ? edge + 1 : edge + label_width + 10;
  const double right = width - value_width - 12;
  const bool single = plot.series.size() == 1;
  const double thickness = single ? 18 : 14;
  const double group_height = (thickness + 2) * static_cast<double>(plot.series.size()) + (above ? 20 : 0) +
                              (single && !above ? 6 : 12);
  const double top = canvas.bottom + 8;
  const double bottom = top + group_height * static_cast<double>(plot.categories.size()) + 2;
  const Axis axis = bar_axis(plot, values);
  const auto x_of = [&](double value) { return left + axis.position(value) * (right - left); };

  double next_free_x = -1e9;
  for (const double tick : axis.ticks) {
    canvas.line("plot-grid", x_of(tick), top, x_of(tick), bottom);
    const std::string label = format_tick(tick, plot.y_unit);
    const double half = text_width(label) / 2;
    const double x = std::max(x_of(tick), half);  // keep the first label inside the image
    if (x - half < next_free_x) continue;
    canvas.text(x, bottom + 16, "plot-faint middle", label);
    next_free_x = x + half + 8;
  }
  const double zero = axis.log ? left : x_of(0);
  for (std::size_t c = 0; c < plot.categories.size(); ++c) {
    const std::string category = one_line(plot.categories[c]);
    double y = top + group_height * static_cast<double>(c) + (single && !above ? 3 : 6);
    if (above) {
      canvas.text(left + 5, y + 13, "plot-text", shorten(category, 66));
      y += 20;
    } else {
      const double middle = y + (thickness + 2) * static_cast<double>(plot.series.size()) / 2;
      canvas.text(left - 8, middle + 3, "plot-text end", category);
    }
    for (std::size_t s = 0; s < plot.series.size(); ++s, y += thickness + 2) {
      const Series& series = plot.series[s];
      const double value = series.y[c];
      if (!is_plottable(value, plot.log_y)) continue;
      const double from = std::min(zero, x_of(value));
      const double to = std::max(zero, x_of(value));
      const std::string figure = format_number(value, plot.y_unit);
      canvas.add(
          R"(<rect class="plot-bar c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2"><title>{}</title></rect>)",
          color_of(plot, s), from, y, std::max(to - from, 1.0), thickness,
          escape_html(
              fmt::format("{}{}{}: {}", category, series.name.empty() ? "" : ", ", series.name, figure)));
      canvas.text(to + 6, y + thickness / 2 + 4, "plot-text", figure);
    }
  }
  canvas.line("plot-axis", zero, top, zero, bottom);
  canvas.bottom = bottom + 22;
  if (!plot.y_label.empty()) {
    canvas.bottom += line_height;
    canvas.text((left + right) / 2, canvas.bottom - 6, "plot-faint middle", plot.y_label);
  }
  return close(canvas, plot);
}

// ---- lines

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
  if (positions.size() <= 10) {
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

std::string render_lines(const Plot& plot) {
  const auto shown = [&](const Series& series, std::size_t i) {
    return is_plottable(series.x[i], plot.log_x) && is_plottable(series.y[i], plot.log_y);
  };
  Extent xs;
  Extent ys;
  std::vector<double> positions;
  for (const Series& series : plot.series) {
    expect(series.x.size() == series.y.size());
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!shown(series, i)) continue;
      xs.include(series.x[i]);
      ys.include(series.y[i]);
      positions.push_back(series.x[i]);
    }
  }
  Canvas canvas;
  render_title(canvas, plot);
  render_legend(canvas, plot);
  if (xs.empty) return render_empty(canvas, plot);

  const Axis x_axis = sweep_axis(plot, xs, std::move(positions));
  const Axis y_axis = value_axis(plot, ys);
  double label_width = 0;
  for (const double tick : y_axis.ticks)
    label_width = std::max(label_width, text_width(format_tick(tick, plot.y_unit)));
  if (!plot.y_label.empty()) {
    canvas.bottom += line_height + 2;
    canvas.text(edge, canvas.bottom - 4, "plot-faint", plot.y_label);
    canvas.bottom += 4;
  }
  const double left = edge + label_width + 8;
  const double right = width - 16;
  const double top = canvas.bottom + 8;
  const double bottom = top + 230;
  const auto x_of = [&](double x) { return left + 8 + x_axis.position(x) * (right - left - 16); };
  const auto y_of = [&](double y) { return bottom - y_axis.position(y) * (bottom - top); };

  for (const double tick : y_axis.ticks) {
    canvas.line("plot-grid", left, y_of(tick), right, y_of(tick));
    canvas.text(left - 8, y_of(tick) + 4, "plot-faint end", format_tick(tick, plot.y_unit));
  }
  canvas.line("plot-axis", left, bottom, right, bottom);
  double next_free_x = -1e9;
  for (const double tick : x_axis.ticks) {
    const std::string label = format_tick(tick);
    const double half = text_width(label) / 2;
    if (x_of(tick) - half < next_free_x) continue;
    canvas.line("plot-axis", x_of(tick), bottom, x_of(tick), bottom + 4);
    canvas.text(std::min(x_of(tick), width - half), bottom + 17, "plot-faint middle", label);
    next_free_x = x_of(tick) + half + 8;
  }
  canvas.bottom = bottom + 22;
  if (!plot.x_label.empty()) {
    canvas.bottom += line_height;
    canvas.text((left + right) / 2, canvas.bottom - 5, "plot-faint middle", plot.x_label);
  }

  constexpr std::size_t max_marked = 400;  // more marks would hide the line and bloat the file
  for (std::size_t s = 0; s < plot.series.size(); ++s) {
    const Series& series = plot.series[s];
    std::string path;
    bool pen_down = false;  // lifted at dropped points, which leaves a gap
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const bool visible = shown(series, i);
      if (visible)
        path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x_of(series.x[i]), y_of(series.y[i]));
      pen_down = visible;
    }
    if (path.empty()) continue;
    canvas.add(R"(<path class="plot-line{} c{}" d="{}"/>)", series.dashed ? " plot-dashed" : "",
               color_of(plot, s), path);
    if (series.dashed || series.x.size() > max_marked) continue;
    const double radius = series.x.size() > 40 ? 2 : 3.5;
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (shown(series, i))
        canvas.add(
            R"(<circle class="plot-mark c{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>)",
            color_of(plot, s), x_of(series.x[i]), y_of(series.y[i]), radius,
            escape_html(fmt::format("{}{}{} {}: {}", series.name, series.name.empty() ? "" : ", ",
                                    plot.x_label, format_tick(series.x[i]),
                                    format_number(series.y[i], plot.y_unit))));
  }
  return close(canvas, plot);
}

}  // namespace

std::string svg(const Plot& plot) {
  return plot.kind == PlotKind::bars ? render_bars(plot) : render_lines(plot);
}

std::string plot_style() {
  return R"(.plot{display:block;width:100%;height:auto;font-size:12px;font-family:inherit}
.plot text{fill:currentColor}
.plot .plot-title{font-size:14px;font-weight:600}
.plot .plot-faint{opacity:.68}
.plot .middle{text-anchor:middle}.plot .end{text-anchor:end}
.plot .plot-grid{stroke:currentColor;stroke-opacity:.13}
.plot .plot-axis{stroke:currentColor;stroke-opacity:.5}
.plot .plot-bar{fill:var(--c)}
.plot .plot-line{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.plot .plot-dashed{stroke-dasharray:2 6;stroke-width:1.6}
.plot .plot-mark{fill:var(--c)}
.plot .plot-bar:hover,.plot .plot-mark:hover{stroke:currentColor;stroke-width:1.5}
.c0{--c:#8592a6}.c1{--c:#2f7bd9}.c2{--c:#e39a2d}.c3{--c:#1d9a6c}
.c4{--c:#8a60d0}.c5{--c:#d6504e}.c6{--c:#18a3b8}.c7{--c:#cf5f9f}
@media (prefers-color-scheme:dark){
.c0{--c:#8b97ab}.c1{--c:#5c9df0}.c2{--c:#eab04f}.c3{--c:#3fbd8b}
.c4{--c:#a988e8}.c5{--c:#ea7371}.c6{--c:#45bfd1}.c7{--c:#e085ba}}
)";
}

}  // namespace tandem
