// Curves in the cells of a terminal. Whole screens are in tests/train/watch_view_test.cpp.
#include "tandem/report/cell_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::string drawn(const CellPlot& plot, int width, int height, bool utf8 = true) {
  std::string text;
  for (const StyledLine& line : draw_cell_plot(plot, width, height, utf8)) {
    EXPECT_LE(line.width(), width);
    std::string one = line.to_text(width, {.color = false});
    one.resize(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

CellPlot rising(int count) {
  CellPlot plot{.title = StyledLine("Title"), .x_label = "x"};
  plot.curves.push_back({"up", Ink::first, {}});
  for (int i = 0; i < count; ++i)
    plot.curves[0].points.push_back({static_cast<double>(i), static_cast<double>(i)});
  plot.x_high = count - 1;
  return plot;
}

TEST(CellPlot, RisingLine_IsDrawnFromCornerToCorner) {
  EXPECT_EQ(drawn(rising(11), 20, 6),
            "Title\n"
            "10 ┤       ⢀⠤⠊ up\n"
            "   │     ⡠⠒⠁\n"
            " 5 ┤  ⢀⠔⠊⠁\n"
            " 0 ┤⡠⠊⠁\n"
            "    0   5   10     x\n");
}

TEST(CellPlot, ManyPointsInOneColumn_AreTheirRange) {
  CellPlot plot = rising(2);
  plot.curves[0].points.clear();
  for (int i = 0; i <= 10'000; ++i) plot.curves[0].points.push_back({i / 1e4, i % 2 == 0 ? 0.0 : 1.0});
  const std::string text = drawn(plot, 20, 6);
  EXPECT_NE(text.find("⣿⣿⣿⣿⣿⣿⣿⣿"), std::string::npos) << text;
}

TEST(CellPlot, PointsOutsideOrNotFinite_AreLeftOut) {
  CellPlot plot = rising(11);
  const std::string before = drawn(plot, 20, 6);
  plot.curves[0].points.push_back({100, 1e9});
  plot.curves[0].points.push_back({10.5, 7});
  plot.curves.push_back({"none", Ink::second, {{5, NAN}, {6, INFINITY}}});
  EXPECT_EQ(drawn(plot, 20, 6), before);
}

TEST(CellPlot, LogAxis_HasEqualDistancesPerDecade) {
  CellPlot plot{.title = StyledLine("Loss"), .x_label = "x"};
  plot.log = true;
  plot.curves.push_back({"y", Ink::first, {{0, 1}, {1, 10}, {2, 100}}});
  plot.x_high = 2;
  const std::string log = drawn(plot, 30, 12);
  for (const char* const tick : {"\n100 ┤", "\n 10 ┤", "\n  1 ┤"})
    EXPECT_NE(log.find(tick), std::string::npos) << log;
  plot.curves[0].points = {{0, 0}, {1, -1}};  // nothing is above 0: linear
  EXPECT_NE(drawn(plot, 30, 12).find(" -1 ┤"), std::string::npos) << drawn(plot, 30, 12);
}

TEST(CellPlot, LabelsThatMeet_AreMovedApart) {
  CellPlot plot = rising(11);
  plot.curves.push_back({"too", Ink::second, plot.curves[0].points});
  const std::string text = drawn(plot, 20, 6);
  EXPECT_NE(text.find(" up\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" too\n"), std::string::npos) << text;
}

TEST(CellPlot, AnySize_IsNeverExceeded) {
  CellPlot plot = rising(11);
  plot.curves[0].points[3].y = 1e7;
  plot.title = StyledLine("T");
  for (int width = 1; width < 60; ++width)
    for (int height = 1; height < 20; ++height) {
      drawn(plot, width, height);
      drawn(plot, width, height, false);
    }
  EXPECT_EQ(draw_cell_plot({}, 10, 5, true).size(), 5U);
}

}  // namespace
}  // namespace tandem
