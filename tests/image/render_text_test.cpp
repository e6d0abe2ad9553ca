#include "tandem/image/render_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tandem/image/font.h"

namespace tandem {
namespace {

constexpr Color white{255, 255, 255};

double ink(const Image& image) {
  return std::accumulate(image.pixels.begin(), image.pixels.end(), 0.0) / 255;
}

double ink(const GlyphCoverage& coverage) {
  return std::accumulate(coverage.values.begin(), coverage.values.end(), 0.0);
}

// A glyph's pixels and its height above the baseline.
std::vector<float> picture(char32_t character) {
  GlyphCoverage coverage = rasterize(font_glyph(character), 0.5, 0);
  coverage.values.push_back(static_cast<float>(coverage.top));
  return coverage.values;
}

TEST(Font, EveryPrintableCharacterHasItsOwnGlyph) {
  std::set<std::vector<float>> glyphs;
  for (char32_t c = U' '; c <= U'~'; ++c) {
    EXPECT_EQ(font_glyph(c).character, c);
    EXPECT_GT(font_glyph(c).advance, 0);
    EXPECT_TRUE(glyphs.insert(picture(c)).second) << static_cast<char>(c);
  }
  for (const char32_t c : {U'ä', U'Ö', U'ß', U'é', U'ñ', U'ç', U'ÿ', U'…'}) {
    EXPECT_EQ(font_glyph(c).character, c);
    EXPECT_TRUE(glyphs.insert(picture(c)).second) << static_cast<int>(c);
  }
  EXPECT_FALSE(glyphs.contains(picture(U'写'))) << "a character without a glyph is a box";
  EXPECT_EQ(&font_glyph(U'写'), &font_glyph(U'\n'));
}

TEST(Font, GlyphsStayBetweenAscentAndDescent) {
  for (char32_t c = 0; c < 0x100; ++c) {
    const GlyphCoverage coverage = rasterize(font_glyph(c), 1, 0);
    EXPECT_GE(coverage.top, -font_ascent) << static_cast<int>(c);
    EXPECT_LE(coverage.top + coverage.height, font_descent) << static_cast<int>(c);
  }
}

// The '-' of the font is one stroke from point to point: a rectangle with half a disk at each end.
TEST(Font, Coverage_IsTheAreaAtAnyPosition) {
  const double radius = 0.42 * 30, area = 4 * 30 * 2 * radius + 3.14159265 * radius * radius;
  for (const double scale : {0.2, 0.5, 2.7})
    for (const double shift : {0.0, 0.25, 0.9})
      EXPECT_NEAR(ink(rasterize(font_glyph(U'-'), scale, shift)), area * scale * scale,
                  0.05 * area * scale * scale);
}

TEST(RenderText, TextLiesInItsBox) {
  Image image = make_image(40, 200, 1);
  render_text(image, 10, 10, "Aging quickly", white, 2);
  const int64_t right = 10 + text_width("Aging quickly", 2), bottom = 10 + text_height(2);
  EXPECT_GT(ink(image), 100);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      EXPECT_TRUE((y >= 10 && y < bottom && x >= 9 && x <= right) || image.at(y, x) == 0) << x << " " << y;
}

TEST(RenderText, ClipsAtEveryBorder) {
  for (const auto& [x, y] : {std::pair{-9, -3}, {6, 6}, {-100, 2}, {3, 500}, {-4, 3}}) {
    Image image = make_image(8, 8, 1), large = make_image(1000, 400, 1);
    render_text(image, x, y, "WWW", white, 2);
    render_text(large, x + 200, y + 200, "WWW", white, 2);
    for (int64_t row = 0; row < 8; ++row)
      for (int64_t column = 0; column < 8; ++column)
        ASSERT_EQ(image.at(row, column), large.at(row + 200, column + 200)) << x << " " << y;
  }
  Image empty;
  render_text(empty, 0, 0, "x", {});
}

TEST(RenderText, GrayImage_UsesTheLuma) {
  Image image = make_image(80, 60, 1);
  render_text(image, 0, 0, "I", {255, 0, 0}, 10);
  EXPECT_EQ(std::ranges::max(image.pixels), 76);
}

TEST(RenderText, Utf8Character_IsOneGlyph) {
  EXPECT_EQ(text_width("\xC3\xA9t\xC3\xA9"), text_width("ete"));
  EXPECT_EQ(text_width("\xE5\x86\x99"), text_width("\n"));  // without a glyph
  EXPECT_EQ(text_width("\xFF\xC3"), text_width("\n\n"));    // not UTF-8
  EXPECT_EQ(text_width(""), 0);
}

TEST(ShortenText, KeepsTheCharactersThatFit) {
  EXPECT_EQ(shorten_text("sobel1", text_width("sobel1")), "sobel1");
  EXPECT_EQ(shorten_text("sobel1", text_width("sobel1") - 1), "sob...");
  EXPECT_EQ(shorten_text("sobel1", text_width("...")), "...");
  EXPECT_EQ(shorten_text("sobel1", 3), "");
  EXPECT_EQ(shorten_text("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", text_width("e...")), "\xC3\xA9...");
}

}  // namespace
}  // namespace tandem
