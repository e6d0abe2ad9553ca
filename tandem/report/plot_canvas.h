// What bar and line plots share: the SVG text so far, title, legend and axis labels. Text widths are
// estimated from character counts because no font metrics are available.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "tandem/report/html.h"
#include "tandem/report/plot.h"
#include "tandem/text/utf8.h"

namespace tandem::detail {

inline constexpr double plot_edge = 4;
inline constexpr double plot_line_height = 18;

inline double text_width(std::string_view text) {
  return 6.8 * display_width(text);
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

// The SVG elements so far and the y coordinate of their lower edge.
struct Canvas {
  double width;
  std::string body = {};
  double bottom = plot_edge;

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

  // The number of characters that fit into a line.
  int columns() const { return static_cast<int>((width - 2 * plot_edge) / 6.8); }

  // Lines of text below what is there, at the left edge or around `middle`; nothing for an empty text.
  void label(std::string_view content);
  void centered_label(std::string_view content, double middle);
};

// The palette index of a series.
int color_of(const Plot& plot, std::size_t i);

// Whether x, or a point of any series that is not a reference line, is beyond the plot's limit.
bool is_beyond(const Plot& plot, double x);
bool has_points_beyond(const Plot& plot);

// The low and the high end of the spread of point i; both are its value if the series has no spread.
double low_of(const Series& series, std::size_t i);
double high_of(const Series& series, std::size_t i);
bool has_spread(const Series& series);

// "5.00 µs" or, with a spread, "5.00 µs (4.50 µs to 6.50 µs)".
std::string value_text(const Plot& plot, const Series& series, std::size_t i);

void render_title(Canvas& canvas, const Plot& plot);
void render_legend(Canvas& canvas, const Plot& plot);
std::string render_empty(Canvas& canvas, const Plot& plot);
std::string close(const Canvas& canvas, const Plot& plot);

std::string render_bars(const Plot& plot, double width);
std::string render_lines(const Plot& plot, double width);

}  // namespace tandem::detail
