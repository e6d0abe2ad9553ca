#include "tandem/image/example_photo.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(ExamplePhoto, IsDeterministic) {
  EXPECT_EQ(example_photo(48, 72), example_photo(48, 72));
}

TEST(ExamplePhoto, HasTheRequestedSize) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 40}, {40, 1}, {31, 17}, {0, 5}, {5, 0}, {1, 100000}}) {
    const Image image = example_photo(height, width);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.channels, 3);
  }
  EXPECT_THROW(example_photo(-1, 5), Error);
}

// A full range of levels, colors, flat areas and strong edges.
TEST(ExamplePhoto, HasTheVarietyOfAPhotograph) {
  const Image photo = example_photo(160, 240), gray = to_gray(photo);
  int64_t dark = 0, bright = 0, colorful = 0, flat = 0, edges = 0;
  for (int64_t y = 0; y < photo.height; ++y)
    for (int64_t x = 0; x < photo.width; ++x) {
      dark += gray.at(y, x) < 70;
      bright += gray.at(y, x) > 200;
      colorful += std::abs(photo.at(y, x, 0) - photo.at(y, x, 2)) > 40;
      const int step = x == 0 ? 10 : std::abs(gray.at(y, x) - gray.at(y, x - 1));
      flat += step <= 4;
      edges += step >= 60;
    }
  const int64_t pixels = photo.height * photo.width;
  EXPECT_GT(dark, pixels / 50);
  EXPECT_GT(bright, pixels / 50);
  EXPECT_GT(colorful, pixels / 4);
  EXPECT_GT(flat, pixels / 4);
  EXPECT_GT(edges, pixels / 100);
}

}  // namespace
}  // namespace tandem
