#include "tandem/report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "report_fixture.h"
#include "tandem/core/error.h"
#include "tandem/report/axis.h"

namespace tandem {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Plot line_plot(std::vector<double> x, std::vector<double> y) {
  Plot plot;
  plot.title = "title";
  plot.x_label = "x";
  plot.y_label = "y";
  plot.series.push_back({.name = "line", .x = std::move(x), .y = std::move(y)});
  return plot;
}

Plot bar_plot(std::vector<double> y) {
  Plot plot;
  plot.title = "bars";
  plot.kind = PlotKind::bars;
  for (std::size_t i = 0; i < y.size(); ++i) plot.categories.push_back("bar " + std::to_string(i));
  plot.series.push_back({.name = "one", .x = {}, .y = std::move(y)});
  return plot;
}

// Well-formed, with every coordinate inside the view box.
void expect_valid_svg(const Plot& plot, double plot_width) {
  const std::string picture = svg(plot, plot_width);
  EXPECT_EQ(xml_fault(picture), "") << picture;
  const std::vector<std::string> boxes = attribute_values(picture, "viewBox");
  ASSERT_EQ(boxes.size(), 1u);
  double left = -1, top = -1, width = 0, height = 0;
  std::istringstream(boxes[0]) >> left >> top >> width >> height;
  EXPECT_EQ(left, 0);
  EXPECT_EQ(top, 0);
  const auto expect_inside = [&](const char* name, double end) {
    for (const std::string& text : attribute_values(picture, name)) {
      const double value = std::stod(text);
      EXPECT_TRUE(value >= 0 && value <= end) << name << " " << text;
    }
  };
  for (const char* name : {"x", "x1", "x2", "cx", "width"}) expect_inside(name, width);
  for (const char* name : {"y", "y1", "y2", "cy", "height"}) expect_inside(name, height);
  EXPECT_FALSE(contains(picture, "nan") || contains(picture, "inf\"") || contains(picture, "inf "))
      << picture;
}

void expect_valid_svg(const Plot& plot) {
  for (const double width : {wide_plot, narrow_plot}) expect_valid_svg(plot, width);
}

TEST(XmlFault, BrokenXml_IsReported) {
  EXPECT_EQ(xml_fault("<a b=\"c\"><d/>text &amp; more</a>"), "");
  for (const char* broken : {"", "text", "<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a>&</a>", "<a b=\"<\"/>",
                             "<a b=\"1\" b=\"2\"/>", "<a", "<a>x > y</a>"})
    EXPECT_NE(xml_fault(broken), "") << broken;
}

TEST(Plot, Lines_HaveOneTitledMarkPerPoint) {
  const Plot plot = line_plot({1, 2, 4, 8}, {1, 1.9, 3.5, 6});
  expect_valid_svg(plot);
  const std::string picture = svg(plot);
  EXPECT_EQ(count(picture, "<circle"), 4);
  EXPECT_EQ(count(picture, "<title>"), 4);
  EXPECT_TRUE(contains(picture, "<title>line, x 4: 3.50</title>")) << picture;
}

TEST(Plot, NoData_SaysSo) {
  for (Plot plot :
       {Plot{}, line_plot({}, {}), line_plot({1, 2}, {nan, infinity}), bar_plot({}), bar_plot({nan})}) {
    expect_valid_svg(plot);
    EXPECT_TRUE(contains(svg(plot), "nothing to show"));
  }
  Plot log = line_plot({1, 2}, {0, -5});
  log.log_y = true;
  EXPECT_TRUE(contains(svg(log), "nothing to show"));
}

TEST(Plot, OnePoint) {
  for (const double value : {0.0, 5.0, -5.0, 1e-200, 1e299}) {
    expect_valid_svg(line_plot({3}, {value}));
    expect_valid_svg(bar_plot({value}));
    EXPECT_EQ(count(svg(line_plot({3}, {value})), "<circle"), 1);
  }
  Plot log = line_plot({3}, {7});
  log.log_x = log.log_y = true;
  expect_valid_svg(log);
}

TEST(Plot, LogAxes_DropNonPositiveValues) {
  Plot plot = line_plot({0, 1, -1, 10, 100}, {5, 5, 5, 0, 50});
  plot.log_x = plot.log_y = true;
  expect_valid_svg(plot);
  EXPECT_EQ(count(svg(plot), "<circle"), 2);
  Plot bars = bar_plot({0, -1, 10, 1000});
  bars.log_y = true;
  expect_valid_svg(bars);
  EXPECT_EQ(count(svg(bars), "<circle"), 2);
}

// The length of a bar on a logarithmic axis, which has no zero, would mean nothing.
TEST(Plot, BarsOnLogAxis_AreDots) {
  Plot plot = bar_plot({1, 2});
  EXPECT_EQ(count(svg(plot), "<rect"), 2);
  EXPECT_EQ(count(svg(plot), "<circle"), 0);
  plot.log_y = true;
  EXPECT_EQ(count(svg(plot), "<rect"), 0);
  EXPECT_EQ(count(svg(plot), "<circle"), 2);
}

TEST(Plot, Spread_IsALineFromLowToHigh) {
  for (const bool log : {false, true}) {
    Plot bars = bar_plot({2, 4});
    bars.log_y = log;
    EXPECT_EQ(count(svg(bars), "plot-spread"), 0);
    bars.series[0].low = {1, 3};
    bars.series[0].high = {3, 5};
    expect_valid_svg(bars);
    EXPECT_EQ(count(svg(bars), "plot-spread"), 6);  // a line and two caps for each
    EXPECT_TRUE(contains(svg(bars), "<title>bar 1, one: 4.00 (3.00 to 5.00)</title>")) << svg(bars);
  }
  Plot lines = line_plot({1, 2}, {2, 4});
  lines.series[0].low = {1, 3};
  lines.series[0].high = {3, nan};
  expect_valid_svg(lines);
  EXPECT_EQ(count(svg(lines), "plot-spread"), 3);
}

TEST(Plot, SpreadOfManyPoints_IsABand) {
  Plot plot = line_plot({}, {});
  for (int i = 0; i < 60; ++i) {
    plot.series[0].x.push_back(i);
    plot.series[0].y.push_back(i == 30 ? nan : i);
    plot.series[0].low.push_back(i - 1);
    plot.series[0].high.push_back(i + 1);
  }
  expect_valid_svg(plot);
  EXPECT_EQ(count(svg(plot), "plot-band"), 2) << "with a gap";
  EXPECT_EQ(count(svg(plot), "plot-spread"), 0);
}

TEST(Plot, OneSlowRepetition_DoesNotSqueezeTheBars) {
  Plot plot = bar_plot({1, 2});
  plot.series[0].low = {1, 2};
  plot.series[0].high = {1, 200};
  expect_valid_svg(plot);
  const std::vector<std::string> widths = attribute_values(svg(plot), "width");
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_GT(std::stod(widths[1]), wide_plot / 3);
  EXPECT_EQ(count(svg(plot), "plot-spread"), 5) << "no cap where it is cut off";
}

double luminance(const std::string& color) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const double part = std::stoi(color.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += (part <= 0.03928 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4)) *
           std::vector{0.2126, 0.7152, 0.0722}[i];
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

// WCAG 1.4.11 asks for 3:1. The backgrounds are those of page.cpp.
TEST(Plot, Colors_HaveEnoughContrast) {
  const std::string style = plot_style();
  int checked = 0;
  for (std::size_t at = style.find("--c:#"); at != std::string::npos; at = style.find("--c:#", at + 1)) {
    const std::string color = style.substr(at + 4, 7);
    const bool dark = at > style.find("prefers-color-scheme:dark");
    for (const char* background :
         dark ? std::vector{"#1a2029", "#12161c"} : std::vector{"#ffffff", "#f6f7f9"})
      EXPECT_GE(contrast(color, background), 3) << color << " on " << background;
    ++checked;
  }
  EXPECT_EQ(checked, 2 * palette_size);
}

TEST(Plot, NonFiniteValues_LeaveAGap) {
  const Plot plot = line_plot({1, 2, 3, 4, 5}, {1, 2, nan, 2, 1});
  expect_valid_svg(plot);
  const std::string picture = svg(plot);
  EXPECT_EQ(count(picture, "<circle"), 4);
  const std::vector<std::string> paths = attribute_values(picture, "d");
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(count(paths[0], "M"), 2) << paths[0];
}

TEST(Plot, HugeRanges) {
  for (const bool log : {false, true}) {
    Plot plot = line_plot({1, 2, 3, 4}, {1e-299, 1, 1e150, 1e299});
    plot.log_y = log;
    expect_valid_svg(plot);
    Plot bars = bar_plot({1e-299, 1, 1e299});
    bars.log_y = log;
    expect_valid_svg(bars);
  }
  expect_valid_svg(line_plot({-1e300, 1e300}, {-1e300, 1e300}));
  expect_valid_svg(
      line_plot({1, 2}, {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}));
  expect_valid_svg(line_plot({1, 2, 3}, {1e15, 1e15 + 1, 1e15 + 2}));
}

TEST(Plot, Bars_ProportionalToValuesIncludingNegative) {
  expect_valid_svg(bar_plot({-3, 4, -1}));
  expect_valid_svg(bar_plot({-3, -1}));
  const std::vector<std::string> widths = attribute_values(svg(bar_plot({1, 2})), "width");
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(std::stod(widths[1]), 2 * std::stod(widths[0]), 0.2);
}

TEST(Plot, SeveralSeries_HaveALegend) {
  Plot plot = line_plot({1, 2}, {1, 2});
  EXPECT_FALSE(contains(svg(plot), ">line</text>"));
  plot.series.push_back({.name = "other", .x = {1, 2}, .y = {2, 3}, .dashed = true});
  expect_valid_svg(plot);
  EXPECT_TRUE(contains(svg(plot), ">line</text>"));
  EXPECT_TRUE(contains(svg(plot), ">other</text>"));
  EXPECT_TRUE(contains(svg(plot), "plot-dashed"));
}

TEST(Plot, PointsBeyondTheLimit_AreHollowAndInTheLegend) {
  Plot plot = line_plot({1, 2, 4, 8}, {1, 2, 2, 1});
  plot.limit = cpu_limit(2);
  expect_valid_svg(plot);
  const std::string picture = svg(plot);
  EXPECT_EQ(count(picture, "class=\"plot-mark c0\""), 2) << picture;
  EXPECT_EQ(count(picture, "class=\"plot-mark plot-hollow c0\""), 2);
  EXPECT_EQ(count(picture, "class=\"plot-limit\""), 1);
  EXPECT_TRUE(contains(picture, ">2 CPUs</text>"));
  EXPECT_TRUE(contains(picture, ">oversubscribed: more than 2 CPUs</text>"));
  EXPECT_FALSE(contains(picture, ">line</text>")) << "a single series needs no name";
}

TEST(Plot, LimitOutsideTheData_HasNoLine) {
  Plot plot = line_plot({8, 16, 32}, {1, 2, 2});
  plot.limit = cpu_limit(1);
  expect_valid_svg(plot);
  EXPECT_EQ(count(svg(plot), "plot-mark plot-hollow"), 3);
  EXPECT_FALSE(contains(svg(plot), "plot-limit"));
  EXPECT_TRUE(contains(svg(plot), ">oversubscribed: more than 1 CPU</text>"));
  plot.limit = cpu_limit(64);
  EXPECT_FALSE(contains(svg(plot), "plot-hollow"));
  EXPECT_FALSE(contains(svg(plot), "plot-limit"));
  EXPECT_FALSE(contains(svg(plot), "oversubscribed"));
}

TEST(Plot, Names_EscapedAndShortened) {
  const std::string evil = "<script>alert('\"&')</script>";
  Plot plot = line_plot({1, 2}, {1, 2});
  plot.title = plot.x_label = plot.y_label = evil + std::string(300, 'w');
  for (int i = 0; i < 12; ++i)
    plot.series.push_back({.name = evil + std::string(100, 'n'), .x = {1, 2}, .y = {2, 3}});
  expect_valid_svg(plot);
  EXPECT_FALSE(contains(svg(plot), "<script"));
  Plot bars = bar_plot({1, 2});
  bars.categories = {evil, std::string(200, 'c')};
  bars.series[0].name = evil;
  expect_valid_svg(bars);
  EXPECT_FALSE(contains(svg(bars), "<script"));
}

TEST(Plot, MismatchedLengths_ThrowInternalError) {
  EXPECT_THROW(svg(line_plot({1, 2}, {1})), InternalError);
  Plot bars = bar_plot({1, 2});
  bars.categories.pop_back();
  EXPECT_THROW(svg(bars), InternalError);
}

TEST(Plot, ManyPoints_StaySmall) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 20000; ++i) {
    x.push_back(i);
    y.push_back(std::sin(i * 0.001));
  }
  const Plot plot = line_plot(x, y);
  expect_valid_svg(plot);
  EXPECT_LT(svg(plot).size(), 300'000u);
}

TEST(StandardPlots, TimePeakCopiesAndThreads) {
  std::vector<StudyRow> rows = sample_report().rows;
  ASSERT_EQ(standard_plots(rows, 2).size(), 3u);  // time, peak, copies: one thread count is no sweep
  for (const Plot& plot : standard_plots(rows, 2)) expect_valid_svg(plot);
  EXPECT_EQ(standard_plots(rows, 2)[0].series.size(), 2u);
  EXPECT_TRUE(standard_plots(rows, 2)[0].log_y);  // 2.5 ms beside 5 µs
  for (const int threads : {1, 2})
    rows.push_back({.case_name = "33×7 f64",
                    .version = "parallel",
                    .device = "cpu",
                    .threads = threads,
                    .figures = {{"median_ms", 2.0 / threads}, {"min_ms", 1}, {"max_ms", 2}}});
  const std::vector<Plot> plots = standard_plots(rows, 2);
  ASSERT_EQ(plots.size(), 4u);
  expect_valid_svg(plots[3]);
  ASSERT_EQ(plots[3].series.size(), 2u);  // parallel and the ideal
  EXPECT_EQ(plots[3].series[0].y, (std::vector<double>{1, 2}));
  ASSERT_TRUE(plots[3].limit);
  EXPECT_EQ(plots[3].limit->x, 2);
  EXPECT_TRUE(standard_plots({}, 2).empty());
}

// Eight threads on two CPUs are slower than two.
TEST(StandardPlots, Bars_ShowTheFastestRowOfAVersion) {
  std::vector<StudyRow> rows;
  for (const auto& [threads, ms] : {std::pair{1, 4.0}, {2, 2.0}, {8, 3.0}})
    rows.push_back({.case_name = "8×8 f32",
                    .version = "parallel",
                    .device = "cpu",
                    .threads = threads,
                    .figures = {{"median_ms", ms}, {"min_ms", ms - 0.5}, {"max_ms", ms + 0.5}}});
  const Plot time = standard_plots(rows, 2).front();
  EXPECT_EQ(time.title, "Time by version");
  ASSERT_EQ(time.series.size(), 1u);
  EXPECT_EQ(time.series[0].y, std::vector<double>{2});
  EXPECT_EQ(time.series[0].low, std::vector<double>{1.5});
  EXPECT_EQ(time.series[0].high, std::vector<double>{2.5});
}

TEST(Axis, LinearTicks_AreRound) {
  const Axis axis = linear_axis(0, 97, 6);
  EXPECT_EQ(axis.ticks, (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis.position(50), 0.5);
  const Axis negative = linear_axis(-0.3, 0.4, 6);
  EXPECT_LE(negative.low, -0.3);
  EXPECT_GE(negative.high, 0.4);
  EXPECT_LE(negative.ticks.size(), 9u);
}

TEST(Axis, LogTicks_AreDecadesOr125) {
  EXPECT_EQ(log_axis(0.5, 2000, 6).ticks, (std::vector<double>{0.1, 1, 10, 100, 1000, 10000}));
  EXPECT_EQ(log_axis(1, 16, 6).ticks, (std::vector<double>{1, 2, 5, 10, 20}));
  EXPECT_EQ(log_axis(1, 16, 6).high, 20);
  EXPECT_LE(log_axis(1e-300, 1e300, 6).ticks.size(), 7u);
  EXPECT_NEAR(log_axis(1, 100, 6).position(10), 0.5, 1e-12);
}

// Versions of others come after Tandem's own, some with copies.
TEST(StudyPlots, CopiesOfOtherLibraries_DoNotReplaceOurs) {
  const auto row = [](const std::string& version, std::optional<double> with_copies) {
    return StudyRow{.case_name = "case",
                    .version = version,
                    .device = with_copies ? "cuda:0" : "cpu",
                    .figures = {{"median_ms", 1}, {"with_copies_ms", with_copies}}};
  };
  const std::vector<Plot> plots =
      standard_plots({row("parallel", {}), row("cuda", 3), row("PyTorch", {}), row("CuPy", 4)}, 2);
  const auto copies = std::ranges::find_if(
      plots, [](const Plot& plot) { return plot.title.starts_with("Cost of the copies"); });
  ASSERT_NE(copies, plots.end());
  EXPECT_EQ(copies->title, "Cost of the copies: cuda");
  ASSERT_EQ(copies->series.size(), 3u);
  EXPECT_EQ(copies->series[0].name, "parallel");
}

}  // namespace
}  // namespace tandem
