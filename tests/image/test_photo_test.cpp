#include "tandem/image/test_photo.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(TestPhoto, IsTheSameEveryTime) {
  EXPECT_EQ(draw_test_photo(48, 72), draw_test_photo(48, 72));
}

TEST(TestPhoto, HasTheSizeAskedFor) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 40}, {40, 1}, {31, 17}, {0, 5}, {5, 0}, {1, 100000}}) {
    const Image image = draw_test_photo(height, width);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.channels, 3);
  }
  EXPECT_THROW(draw_test_photo(-1, 5), Error);
}

// What makes it useful: a full range of levels, real colour, flat places and strong edges.
TEST(TestPhoto, LooksLikeAPhotograph) {
  const Image photo = draw_test_photo(160, 240), grey = to_grey(photo);
  int64_t dark = 0, bright = 0, colourful = 0, flat = 0, edges = 0;
  for (int64_t y = 0; y < photo.height; ++y)
    for (int64_t x = 0; x < photo.width; ++x) {
      dark += grey.at(y, x) < 70;
      bright += grey.at(y, x) > 200;
      colourful += std::abs(photo.at(y, x, 0) - photo.at(y, x, 2)) > 40;
      const int step = x == 0 ? 10 : std::abs(grey.at(y, x) - grey.at(y, x - 1));
      flat += step <= 4;
      edges += step >= 60;
    }
  const int64_t pixels = photo.height * photo.width;
  EXPECT_GT(dark, pixels / 50);
  EXPECT_GT(bright, pixels / 50);
  EXPECT_GT(colourful, pixels / 4);
  EXPECT_GT(flat, pixels / 4);
  EXPECT_GT(edges, pixels / 100);
}

}  // namespace
}  // namespace tandem
