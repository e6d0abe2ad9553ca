// Renders a Plot as SVG (bars in plot_bars.cpp, lines in plot_lines.cpp) and holds the style sheet.
#include "tandem/report/plot.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/report/plot_canvas.h"

namespace tandem {
namespace detail {

void Canvas::label(std::string_view content) {
  if (content.empty()) return;
  for (const std::string& line : wrap(content, columns())) {
    bottom += plot_line_height;
    text(plot_edge, bottom - 4, "plot-faint", line);
  }
}

void Canvas::centered_label(std::string_view content, double middle) {
  if (content.empty()) return;
  for (const std::string& line : wrap(content, columns())) {
    bottom += plot_line_height;
    const double half = text_width(line) / 2;
    const double x = std::max(std::min(middle, width - half), std::min(half, width / 2));
    text(x, bottom - 6, "plot-faint middle", line);
  }
}

int color_of(const Plot& plot, std::size_t i) {
  const int color = plot.series[i].color.value_or(static_cast<int>(i));
  return ((color % palette_size) + palette_size) % palette_size;
}

bool has_spread(const Series& series) {
  return !series.low.empty();
}

double low_of(const Series& series, std::size_t i) {
  return has_spread(series) ? series.low[i] : series.y[i];
}

double high_of(const Series& series, std::size_t i) {
  return has_spread(series) ? series.high[i] : series.y[i];
}

std::string value_text(const Plot& plot, const Series& series, std::size_t i) {
  const std::string value = format_number(series.y[i], plot.y_unit);
  if (!has_spread(series)) return value;
  return fmt::format("{} ({} to {})", value, format_number(series.low[i], plot.y_unit),
                     format_number(series.high[i], plot.y_unit));
}

void render_title(Canvas& canvas, const Plot& plot) {
  for (const std::string& line : wrap(plot.title, static_cast<int>(canvas.width / 8.8))) {
    canvas.bottom += plot_line_height;
    canvas.text(plot_edge, canvas.bottom - 4, "plot-title", line);
  }
}

bool is_beyond(const Plot& plot, double x) {
  return plot.limit && x > plot.limit->x;
}

bool has_points_beyond(const Plot& plot) {
  return std::ranges::any_of(plot.series, [&](const Series& series) {
    return !series.dashed && std::ranges::any_of(series.x, [&](double x) { return is_beyond(plot, x); });
  });
}

void render_legend(Canvas& canvas, const Plot& plot) {
  const bool beyond = has_points_beyond(plot);
  if (plot.series.size() < 2 && !beyond) return;
  double x = plot_edge;
  canvas.bottom += plot_line_height + 2;
  // Starts a new line where the entry does not fit; `mark` is called before its text.
  const auto entry = [&](const std::string& text, const auto& mark) {
    const std::string name = shorten(one_line(text), canvas.columns() - 5);
    const double needed = 18 + text_width(name) + 14;
    if (x > plot_edge && x + needed > canvas.width) {
      x = plot_edge;
      canvas.bottom += plot_line_height;
    }
    mark(x, canvas.bottom - 4);
    canvas.text(x + 18, canvas.bottom - 4, "plot-text", name);
    x += needed;
  };
  const auto series_mark = [&](std::size_t i, double left, double y) {
    if (plot.kind == PlotKind::bars && plot.log_y)
      canvas.add(R"(<circle class="plot-mark c{}" cx="{:.1f}" cy="{:.1f}" r="5"/>)", color_of(plot, i),
                 left + 5.5, y - 4.5);
    else if (plot.kind == PlotKind::bars)
      canvas.add(R"(<rect class="plot-bar c{}" x="{:.1f}" y="{:.1f}" width="11" height="11" rx="2"/>)",
                 color_of(plot, i), left, y - 10);
    else
      canvas.add(R"(<line class="plot-line{} c{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
                 plot.series[i].dashed ? " plot-dashed" : "", color_of(plot, i), left, y - 4, left + 13,
                 y - 4);
  };
  if (plot.series.size() > 1)
    for (std::size_t i = 0; i < plot.series.size(); ++i)
      entry(plot.series[i].name, [&](double left, double y) { series_mark(i, left, y); });
  if (beyond)
    entry(plot.limit->beyond, [&](double left, double y) {
      canvas.add(R"(<circle class="plot-hollow" cx="{:.1f}" cy="{:.1f}" r="4"/>)", left + 6.5, y - 4);
    });
}

std::string render_empty(Canvas& canvas, const Plot& plot) {
  canvas.bottom += 70;
  canvas.text(canvas.width / 2, canvas.bottom - 30, "plot-faint middle", "nothing to show");
  return close(canvas, plot);
}

std::string close(const Canvas& canvas, const Plot& plot) {
  return fmt::format(
      R"(<svg class="plot {}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>)",
      canvas.width < wide_plot ? "narrow" : "wide", canvas.width, std::ceil(canvas.bottom + plot_edge),
      escape_html(plot.title), canvas.body);
}

}  // namespace detail

std::string svg(const Plot& plot, double width) {
  for (const Series& series : plot.series) {
    const std::size_t count = plot.kind == PlotKind::bars ? plot.categories.size() : series.x.size();
    expect(series.y.size() == count);
    expect(series.low.size() == series.high.size() && (series.low.empty() || series.low.size() == count));
  }
  return plot.kind == PlotKind::bars ? detail::render_bars(plot, width) : detail::render_lines(plot, width);
}

std::string plot_style() {
  return R"(.plot{display:block;width:100%;height:auto;font-size:12px;font-family:inherit}
.plot.narrow{display:none}
@media print,screen and (max-width:600px){.plot.narrow{display:block}.plot.wide{display:none}}
.plot text{fill:currentColor}
.plot .plot-title{font-size:14px;font-weight:600}
.plot .plot-faint{opacity:.72}
.plot .middle{text-anchor:middle}.plot .end{text-anchor:end}
.plot .plot-grid{stroke:currentColor;stroke-opacity:.13}
.plot .plot-axis{stroke:currentColor;stroke-opacity:.5}
.plot .plot-bar{fill:var(--c)}
.plot .plot-line{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.plot .plot-dashed{stroke-dasharray:2 6;stroke-width:1.6}
.plot .plot-mark{fill:var(--c)}
.plot .plot-hollow{fill:var(--card,#fff);stroke:var(--c,currentColor);stroke-width:1.8}
.plot .plot-limit{stroke:currentColor;stroke-opacity:.6;stroke-dasharray:5 4}
.plot .plot-spread{stroke:currentColor;stroke-opacity:.75;stroke-width:1.3;fill:none}
.plot .plot-band{fill:var(--c);fill-opacity:.16;stroke:none}
.plot .plot-bar:hover,.plot .plot-mark:hover{stroke:currentColor;stroke-width:1.5}
.c0{--c:#74829a}.c1{--c:#2f7bd9}.c2{--c:#c77700}.c3{--c:#1d9a6c}
.c4{--c:#8a60d0}.c5{--c:#d6504e}.c6{--c:#0f8ea1}.c7{--c:#cf5f9f}
.c8{--c:#6f7d1d}.c9{--c:#8f5a34}.c10{--c:#3949ab}.c11{--c:#4f9a3d}.c12{--c:#a0307a}.c13{--c:#3f6470}
@media screen and (prefers-color-scheme:dark){
.c0{--c:#8b97ab}.c1{--c:#5c9df0}.c2{--c:#eab04f}.c3{--c:#3fbd8b}
.c4{--c:#a988e8}.c5{--c:#ea7371}.c6{--c:#45bfd1}.c7{--c:#e085ba}
.c8{--c:#b9c65a}.c9{--c:#cf9a73}.c10{--c:#8c9bf0}.c11{--c:#8ccf7a}.c12{--c:#d977b8}.c13{--c:#9cc0cc}}
)";
}

}  // namespace tandem
