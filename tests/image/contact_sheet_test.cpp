#include "tandem/image/contact_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

using Rgb = std::array<int, 3>;

Rgb pixel(const Image& image, int64_t y, int64_t x) {
  return {image.at(y, x, 0), image.at(y, x, 1), image.at(y, x, 2)};
}

LabeledImage uniform(int64_t height, int64_t width, uint8_t level, std::string label) {
  Image image = make_image(height, width, 1);
  std::ranges::fill(image.pixels, level);
  return {std::move(image), std::move(label)};
}

bool has_ink(const Image& sheet, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  for (int64_t y = top; y < bottom; ++y)
    for (int64_t x = left; x < right; ++x)
      if (sheet.at(y, x, 0) < 192) return true;
  return false;
}

TEST(ContactSheet, LaysOutAGridWithLabels) {
  const LabeledImage images[] = {uniform(40, 40, 90, "one"), uniform(40, 40, 120, "two"),
                                 uniform(40, 40, 150, "")};
  const SheetOptions options{
      .columns = 2, .cell_width = 40, .cell_height = 40, .margin = 10, .text_scale = 1};
  const Image sheet = contact_sheet(images, options);
  EXPECT_EQ(sheet.channels, 3);
  EXPECT_EQ(sheet.width, 10 + 2 * 50);
  EXPECT_EQ(sheet.height, 10 + 2 * (40 + 4 + 8 + 10));
  EXPECT_EQ(pixel(sheet, 30, 30), (Rgb{90, 90, 90}));
  EXPECT_EQ(pixel(sheet, 30, 80), (Rgb{120, 120, 120}));
  EXPECT_EQ(pixel(sheet, 92, 30), (Rgb{150, 150, 150}));
  EXPECT_EQ(pixel(sheet, 0, 0), (Rgb{255, 255, 255}));
  EXPECT_EQ(pixel(sheet, 92, 80), (Rgb{255, 255, 255})) << "the fourth cell is empty";
  EXPECT_TRUE(has_ink(sheet, 54, 62, 10, 50)) << "label of the first";
  EXPECT_TRUE(has_ink(sheet, 54, 62, 60, 100)) << "label of the second";
  EXPECT_FALSE(has_ink(sheet, 116, 124, 0, 110)) << "the third has none";
}

TEST(ContactSheet, Mark_ColorsFrameAndLabel) {
  LabeledImage images[] = {uniform(40, 40, 90, "a"), uniform(40, 40, 90, "a"), uniform(40, 40, 90, "a")};
  images[1].mark = SheetMark::right;
  images[2].mark = SheetMark::wrong;
  const Image sheet =
      contact_sheet(images, {.columns = 3, .cell_width = 40, .cell_height = 40, .margin = 12});
  const auto above = [&](int64_t i) { return pixel(sheet, 10, 12 + i * 52 + 20); };  // two pixels above
  EXPECT_EQ(above(0), (Rgb{255, 255, 255}));
  EXPECT_GT(above(1)[1], above(1)[0] + 50) << "green";
  EXPECT_GT(above(2)[0], above(2)[1] + 50) << "red";
  EXPECT_EQ(pixel(sheet, 12, 12 + 52), (Rgb{90, 90, 90})) << "the image is not covered";
}

TEST(ContactSheet, KeepsTheAspectRatio) {
  const LabeledImage images[] = {uniform(50, 100, 0, "")};
  const Image sheet =
      contact_sheet(images, {.cell_width = 60, .cell_height = 60, .margin = 5, .text_scale = 1});
  int64_t dark_rows = 0, dark_columns = 0;
  for (int64_t y = 0; y < sheet.height; ++y) dark_rows += sheet.at(y, sheet.width / 2) == 0;
  for (int64_t x = 0; x < sheet.width; ++x) dark_columns += sheet.at(20, x) == 0;
  EXPECT_EQ(dark_rows, 30);
  EXPECT_EQ(dark_columns, 60);
}

TEST(ContactSheet, MultilineLabels_AreRendered) {
  const LabeledImage images[] = {uniform(40, 40, 90, "one"), uniform(40, 40, 120, "two\nthree\n4")};
  const Image sheet = contact_sheet(
      images, {.columns = 2, .cell_width = 40, .cell_height = 40, .margin = 10, .text_scale = 1});
  EXPECT_EQ(sheet.height, 10 + 40 + 4 + 3 * 8 + 2 + 10);
  for (const int64_t line : {54, 63, 72}) {
    EXPECT_EQ(has_ink(sheet, line, line + 8, 10, 50), line == 54) << line;
    EXPECT_TRUE(has_ink(sheet, line, line + 8, 60, 100)) << line;
  }
}

TEST(ContactSheet, IntegerScale_EnlargesByWholeFactorsOnly) {
  const LabeledImage images[] = {uniform(12, 6, 0, "")};
  const Image sheet = contact_sheet(
      images, {.cell_width = 30, .cell_height = 30, .margin = 5, .text_scale = 1, .integer_scale = true});
  int64_t dark = 0;
  for (int64_t y = 0; y < sheet.height; ++y)
    for (int64_t x = 0; x < sheet.width; ++x) dark += sheet.at(y, x) == 0;
  EXPECT_EQ(dark, 24 * 12) << "twice, though 2.5 times would fit";
}

TEST(ContactSheet, LongLabels_AreShortenedToTheirCell) {
  const std::string label(200, 'W');
  const LabeledImage images[] = {uniform(40, 40, 255, label), uniform(40, 40, 255, label)};
  const Image sheet = contact_sheet(
      images, {.columns = 2, .cell_width = 60, .cell_height = 40, .margin = 10, .text_scale = 1});
  EXPECT_TRUE(has_ink(sheet, 54, 62, 10, 70));
  EXPECT_FALSE(has_ink(sheet, 0, sheet.height, 70, 80)) << "between the cells";
  EXPECT_FALSE(has_ink(sheet, 0, sheet.height, 0, 10));
}

TEST(ContactSheet, ZeroColumns_PicksASquareGrid) {
  const std::vector<LabeledImage> images(7, uniform(10, 10, 0, "x"));
  const Image sheet =
      contact_sheet(images, {.cell_width = 10, .cell_height = 10, .margin = 2, .text_scale = 1});
  EXPECT_EQ(sheet.width, 2 + 3 * 12);
}

TEST(ContactSheet, ExtremeAspectRatios_KeepAtLeastOnePixel) {
  const LabeledImage images[] = {uniform(1, 4000, 0, "wide"), uniform(4000, 1, 0, "high")};
  EXPECT_GT(contact_sheet(images).height, 320);
}

TEST(ContactSheet, NoImagesOrEmptyImages_Throw) {
  EXPECT_EQ(error_text([] { contact_sheet({}); }), "[contact_sheet] expected at least one image, got none");
  const LabeledImage images[] = {uniform(4, 4, 0, "a"), {Image{}, "b"}};
  EXPECT_EQ(error_text([&] { contact_sheet(images); }), "[contact_sheet] image 1 (b) is empty");
  EXPECT_THROW(contact_sheet(std::span(images, 1), {.cell_width = 0}), Error);
}

}  // namespace
}  // namespace tandem
