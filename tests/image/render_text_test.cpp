#include "tandem/image/render_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tandem/image/font.h"

namespace tandem {
namespace {

TEST(Font, EveryPrintableCharacterHasItsOwnGlyph) {
  std::set<Glyph> glyphs;
  for (char c = ' '; c <= '~'; ++c) EXPECT_TRUE(glyphs.insert(glyph(c)).second) << c;
  EXPECT_FALSE(glyphs.contains(glyph('\n'))) << "a character without a glyph is a box";
  EXPECT_EQ(glyph(char(0xC3)), glyph('\n'));
}

TEST(Font, GlyphsFitFiveColumns) {
  for (char c = ' '; c <= '~'; ++c)
    for (const uint8_t row : glyph(c)) EXPECT_LT(row, 32) << c;
}

TEST(RenderText, RendersTheGlyph) {
  Image image = make_image(9, 7, 1);
  render_text(image, 1, 1, "L", {255, 255, 255});
  Image expected = make_image(9, 7, 1);
  for (int64_t y = 1; y <= 7; ++y) expected.at(y, 1) = 255;
  for (int64_t x = 1; x <= 5; ++x) expected.at(7, x) = 255;
  EXPECT_EQ(image, expected);
}

TEST(RenderText, ScaleEnlargesEveryPixel) {
  Image one = make_image(8, 17, 3), three = make_image(24, 51, 3);
  render_text(one, 0, 0, "aZ%", {10, 20, 30}, 1);
  render_text(three, 0, 0, "aZ%", {10, 20, 30}, 3);
  for (int64_t y = 0; y < three.height; ++y)
    for (int64_t x = 0; x < three.width; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(three.at(y, x, c), one.at(y / 3, x / 3, c));
  EXPECT_EQ(text_width("aZ%", 3), three.width);
  EXPECT_EQ(text_height(3), three.height);
}

TEST(RenderText, ClipsAtEveryBorder) {
  for (const auto& [x, y] : {std::pair{-9, -3}, {6, 6}, {-100, 2}, {3, 500}, {-4, 3}}) {
    Image image = make_image(8, 8, 1), large = make_image(1000, 400, 1);
    render_text(image, x, y, "WWW", {255, 255, 255}, 2);
    render_text(large, x + 200, y + 200, "WWW", {255, 255, 255}, 2);
    for (int64_t row = 0; row < 8; ++row)
      for (int64_t column = 0; column < 8; ++column)
        ASSERT_EQ(image.at(row, column), large.at(row + 200, column + 200)) << x << " " << y;
  }
  Image empty;
  render_text(empty, 0, 0, "x", {});
}

TEST(RenderText, GrayImage_UsesTheLuma) {
  Image image = make_image(8, 6, 1);
  render_text(image, 0, 0, "I", {255, 0, 0});
  EXPECT_EQ(std::ranges::max(image.pixels), 76);
}

TEST(RenderText, Utf8Character_IsOneBox) {
  EXPECT_EQ(text_width("\xC3\xA9t\xC3\xA9"), text_width("ete"));
  EXPECT_EQ(text_width(""), 0);
}

TEST(ShortenText, KeepsTheCharactersThatFit) {
  EXPECT_EQ(shorten_text("sobel1", text_width("sobel1")), "sobel1");
  EXPECT_EQ(shorten_text("sobel1", text_width("sobel1") - 1), "so...");
  EXPECT_EQ(shorten_text("sobel1", text_width("...")), "...");
  EXPECT_EQ(shorten_text("sobel1", 3), "");
  EXPECT_EQ(shorten_text("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", text_width("1234")), "\xC3\xA9...");
}

}  // namespace
}  // namespace tandem
