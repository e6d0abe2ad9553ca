// Horizontal bars from zero. On a logarithmic axis, which has no zero, they are dots: the length of a bar
// would mean nothing. A spread is a line through the end of the bar or the dot.
#include "tandem/report/axis.h"
#include "tandem/report/plot_canvas.h"

namespace tandem::detail {
namespace {

struct Layout {
  bool above = false;  // category names stand above their bars instead of left of them
  bool single = false;
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  double thickness = 0;
  double group_height = 0;
  Axis axis;

  double x_of(double value) const {
    return left + std::clamp(axis.position(value), 0.0, 1.0) * (right - left);
  }
  double zero() const { return axis.log ? left : x_of(0); }
};

// The axis ends at the longest bar; its value label is placed to the right, where space is reserved. One slow
// repetition must not squeeze the bars of a linear axis: a spread is cut off there.
Axis bar_axis(const Plot& plot, const Extent& values, const Extent& spreads) {
  constexpr int max_ticks = 7;
  // A logarithmic axis starts clearly below the minimum, so that the first dot is not on the edge.
  const double high = plot.log_y ? spreads.max : std::min(spreads.max, 1.5 * std::max(values.max, 0.0));
  const double end = std::max(values.max, high);
  Axis axis = plot.log_y ? log_axis(std::max(spreads.min * 0.7, 1e-300), end, max_ticks)
                         : linear_axis(std::min(values.min, 0.0), std::max(end, 0.0), max_ticks);
  if (end > 0) axis.high = end;
  std::erase_if(axis.ticks, [&](double tick) { return tick > axis.high; });
  return axis;
}

Layout lay_out(const Plot& plot, const Canvas& canvas, const Extent& values, const Extent& spreads,
               double value_width) {
  double label_width = 0;
  for (const std::string& category : plot.categories)
    label_width = std::max(label_width, text_width(category));
  Layout layout;
  // Short category names go left of their bars, long ones above.
  layout.above = label_width > 0.27 * canvas.width;
  layout.single = plot.series.size() == 1;
  layout.left = layout.above ? plot_edge + 1 : plot_edge + label_width + 10;
  layout.right = canvas.width - value_width - 12;
  layout.thickness = layout.single ? 18 : 14;
  layout.group_height = (layout.thickness + 2) * static_cast<double>(plot.series.size()) +
                        (layout.above ? 20 : 0) + (layout.single && !layout.above ? 6 : 12);
  layout.top = canvas.bottom + 8;
  layout.bottom = layout.top + layout.group_height * static_cast<double>(plot.categories.size()) + 2;
  layout.axis = bar_axis(plot, values, spreads);
  return layout;
}

void render_ticks(Canvas& canvas, const Plot& plot, const Layout& layout) {
  double next_free_x = -1e9;
  for (const double tick : layout.axis.ticks) {
    const double tick_x = layout.x_of(tick);
    canvas.line("plot-grid", tick_x, layout.top, tick_x, layout.bottom);
    const std::string label = format_tick(tick, plot.y_unit);
    const double half = text_width(label) / 2;
    const double x = std::max(tick_x, half);  // keep the first label inside the image
    if (x - half < next_free_x) continue;
    canvas.text(x, layout.bottom + 16, "plot-faint middle", label);
    next_free_x = x + half + 8;
  }
}

// A line from low to high with a cap at each end that is not cut off. Returns the right end.
double render_spread(Canvas& canvas, const Series& series, std::size_t i, const Layout& layout, double y) {
  const double from = layout.x_of(low_of(series, i)), to = layout.x_of(high_of(series, i));
  canvas.line("plot-spread", from, y, to, y);
  if (low_of(series, i) >= layout.axis.low) canvas.line("plot-spread", from, y - 3, from, y + 3);
  if (high_of(series, i) <= layout.axis.high) canvas.line("plot-spread", to, y - 3, to, y + 3);
  return to;
}

// The bar or dot of series s in category c, centered at y.
void render_value(Canvas& canvas, const Plot& plot, std::size_t s, std::size_t c, const Layout& layout,
                  double y) {
  const Series& series = plot.series[s];
  const double value = series.y[c];
  const std::string title =
      escape_html(fmt::format("{}{}{}: {}", one_line(plot.categories[c]), series.name.empty() ? "" : ", ",
                              series.name, value_text(plot, series, c)));
  const double from = std::min(layout.zero(), layout.x_of(value));
  const double to = std::max(layout.zero(), layout.x_of(value));
  const bool spread = has_spread(series) && is_plottable(low_of(series, c), plot.log_y) &&
                      is_plottable(high_of(series, c), plot.log_y);
  double end = to;
  if (plot.log_y) {
    canvas.line("plot-grid", layout.left, y, layout.right, y);
    if (spread) end = std::max(end, render_spread(canvas, series, c, layout, y));
    canvas.add(R"(<circle class="plot-mark c{}" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>)",
               color_of(plot, s), to, y, title);
    end = std::max(end, to + 5);
  } else {
    canvas.add(
        R"(<rect class="plot-bar c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2"><title>{}</title></rect>)",
        color_of(plot, s), from, y - layout.thickness / 2, std::max(to - from, 1.0), layout.thickness, title);
    if (spread) end = std::max(end, render_spread(canvas, series, c, layout, y));
  }
  canvas.text(end + 6, y + 4, "plot-text", format_number(value, plot.y_unit));
}

void render_category(Canvas& canvas, const Plot& plot, std::size_t c, const Layout& layout) {
  const std::string category = one_line(plot.categories[c]);
  double y =
      layout.top + layout.group_height * static_cast<double>(c) + (layout.single && !layout.above ? 3 : 6);
  if (layout.above) {
    canvas.text(layout.left + 5, y + 13, "plot-text", shorten(category, canvas.columns() - 2));
    y += 20;
  } else {
    const double middle = y + (layout.thickness + 2) * static_cast<double>(plot.series.size()) / 2;
    canvas.text(layout.left - 8, middle + 3, "plot-text end", category);
  }
  for (std::size_t s = 0; s < plot.series.size(); ++s, y += layout.thickness + 2)
    if (is_plottable(plot.series[s].y[c], plot.log_y))
      render_value(canvas, plot, s, c, layout, y + layout.thickness / 2);
}

}  // namespace

std::string render_bars(const Plot& plot, double width) {
  Extent values, spreads;
  double value_width = 0;
  for (const Series& series : plot.series)
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!is_plottable(series.y[i], plot.log_y)) continue;
      values.include(series.y[i]);
      value_width = std::max(value_width, text_width(format_number(series.y[i], plot.y_unit)));
      for (const double end : {series.y[i], low_of(series, i), high_of(series, i)})
        if (is_plottable(end, plot.log_y)) spreads.include(end);
    }
  Canvas canvas{.width = width};
  render_title(canvas, plot);
  render_legend(canvas, plot);
  if (values.empty) return render_empty(canvas, plot);

  const Layout layout = lay_out(plot, canvas, values, spreads, value_width);
  render_ticks(canvas, plot, layout);
  for (std::size_t c = 0; c < plot.categories.size(); ++c) render_category(canvas, plot, c, layout);
  canvas.line("plot-axis", layout.zero(), layout.top, layout.zero(), layout.bottom);
  canvas.bottom = layout.bottom + 22;
  canvas.centered_label(plot.y_label, (layout.left + layout.right) / 2);
  return close(canvas, plot);
}

}  // namespace tandem::detail
