#include "tandem/image/heat_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

Image flat_photo(int64_t height, int64_t width, uint8_t level) {
  Image image = make_image(height, width, 3);
  std::ranges::fill(image.pixels, level);
  return image;
}

int luma(const Image& image, int64_t y, int64_t x) {
  return (2 * image.at(y, x, 0) + 5 * image.at(y, x, 1) + image.at(y, x, 2)) / 8;
}

// One hot cell of 4 × 4 over a rectangle.
HeatMap hot_cell(int64_t row, int64_t column, double x, double y, double width, double height) {
  HeatMap heat{.height = 4,
               .width = 4,
               .values = std::vector<float>(16, 0.0f),
               .x = x,
               .y = y,
               .covered_width = width,
               .covered_height = height};
  heat.values[static_cast<size_t>(4 * row + column)] = 1;
  return heat;
}

TEST(HeatMap, HotCell_IsTheBrightestOfWhiteAndBlackPhotographs) {
  for (const uint8_t level : {uint8_t{0}, uint8_t{255}}) {
    const Image image = render_heat(flat_photo(80, 120, level), hot_cell(1, 2, 0, 0, 120, 80));
    EXPECT_EQ(image.height, 80);
    EXPECT_EQ(image.width, 120);
    EXPECT_EQ(image.channels, 3);
    const int hot = luma(image, 30, 75);
    EXPECT_GT(hot, 130);
    for (const auto& [y, x] : {std::pair{70, 10}, {5, 75}, {70, 75}, {30, 5}}) {
      EXPECT_LT(luma(image, y, x), 120) << y << " " << x;
      EXPECT_EQ(image.at(y, x, 0), image.at(y, x, 2)) << "cold pixels are gray";
    }
  }
}

TEST(HeatMap, Rectangle_IsCoveredAndTheRestIsDark) {
  const Image image = render_heat(flat_photo(60, 100, 200), hot_cell(0, 0, 20, 10, 40, 40));
  EXPECT_GT(luma(image, 15, 25), 160);
  EXPECT_LT(luma(image, 15, 10), 60);                        // left of it
  EXPECT_LT(luma(image, 55, 30), 60);                        // below it
  EXPECT_GT(luma(image, 45, 55), luma(image, 45, 65) + 40);  // its right border is at 60
}

TEST(HeatMap, RectangleBeyondThePhotograph_IsCut) {
  // As a letterbox: the map is as high as wide, the photograph half as high.
  const Image image = render_heat(flat_photo(40, 80, 100), hot_cell(1, 0, 0, -20, 80, 80));
  EXPECT_GT(luma(image, 10, 10), 140);
  EXPECT_LT(luma(image, 35, 70), 100);
}

TEST(HeatMap, Mirrored_StartsAtTheRight) {
  HeatMap heat = hot_cell(1, 0, 0, 0, 80, 80);
  heat.mirrored = true;
  const Image image = render_heat(flat_photo(80, 80, 100), heat);
  EXPECT_GT(luma(image, 30, 70), 140);
  EXPECT_LT(luma(image, 30, 10), 100);
}

TEST(HeatMap, Half_HasAWhiteLine) {
  const Image scale = heat_scale(9, 101);
  EXPECT_GE(luma(scale, 4, 50), 250);
  EXPECT_LT(luma(scale, 4, 40), 200);
  int previous = -1;  // but for the line, the scale becomes brighter
  for (int64_t x = 0; x < 101; ++x) {
    if (x > 44 && x < 56) continue;
    EXPECT_GE(luma(scale, 4, x), previous - 1) << x;
    previous = luma(scale, 4, x);
  }
}

TEST(HeatMap, BadInput_IsRefused) {
  const HeatMap heat = hot_cell(0, 0, 0, 0, 10, 10);
  EXPECT_EQ(error_text([&] { render_heat(Image{}, heat); }),
            "[heat] expected a photograph, got an empty image");
  HeatMap short_one = heat;
  short_one.values.pop_back();
  EXPECT_EQ(error_text([&] { render_heat(flat_photo(4, 4, 0), short_one); }),
            "[heat] expected 16 values for a map of 4x4 over a rectangle of pixels, got 15 over 10x10");
  HeatMap flat = heat;
  flat.covered_width = 0;
  EXPECT_THROW(render_heat(flat_photo(4, 4, 0), flat), Error);
}

}  // namespace
}  // namespace tandem
