#include "tandem/image/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/render_text.h"
#include "tandem/image/resize_area.h"

namespace tandem {
namespace {

constexpr Color white{255, 255, 255};

// How an image and its label are shown; the thick frame is inside the margin.
struct MarkStyle {
  Color frame, ink;
  int64_t thickness;
};

MarkStyle style_of(SheetMark mark, int64_t margin) {
  const int64_t thick = std::clamp<int64_t>(margin / 3, 1, 5);
  switch (mark) {
    case SheetMark::right:
      return {{24, 140, 72}, {12, 96, 48}, thick};
    case SheetMark::wrong:
      return {{204, 36, 36}, {168, 16, 16}, thick};
    case SheetMark::none:
      break;
  }
  return {{208, 208, 208}, {32, 32, 40}, 1};
}

Image fit_to_cell(const Image& image, const SheetOptions& options) {
  const int64_t cell_height = options.cell_height, cell_width = options.cell_width;
  double ratio =
      std::min(double(cell_width) / double(image.width), double(cell_height) / double(image.height));
  if (options.integer_scale && ratio > 1) ratio = std::floor(ratio);
  const auto side = [&](int64_t length, int64_t max_length) {
    return std::clamp<int64_t>(std::llround(double(length) * ratio), 1, max_length);
  };
  return resize_area(image, side(image.height, cell_height), side(image.width, cell_width));
}

void paste(Image& sheet, const Image& image, int64_t y, int64_t x) {
  const Image rgb = to_rgb(image);
  for (int64_t row = 0; row < rgb.height; ++row)
    std::copy_n(rgb.row(row), rgb.row_bytes(), &sheet.at(y + row, x));
}

std::vector<std::string> split_lines(const std::string& label) {
  std::vector<std::string> lines(1);
  for (const char c : label) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

}  // namespace

Image contact_sheet(std::span<const LabeledImage> images, const SheetOptions& options) {
  check(!images.empty(), "[contact_sheet] expected at least one image, got none");
  check(
      options.columns >= 0 && options.cell_width >= 1 && options.cell_height >= 1 && options.margin >= 1 &&
          options.text_scale >= 1,
      "[contact_sheet] expected columns >= 0 and cells, margin and text of at least 1, got {}, {}x{}, {}, {}",
      options.columns, options.cell_width, options.cell_height, options.margin, options.text_scale);
  const int64_t count = int64_t(images.size());
  const int64_t columns =
      std::min(count, options.columns != 0 ? options.columns : int64_t(std::ceil(std::sqrt(double(count)))));
  const int64_t rows = (count + columns - 1) / columns;

  std::vector<Image> scaled;
  std::vector<int64_t> row_heights(size_t(rows), 0);
  int64_t lines = 1;
  for (int64_t i = 0; i < count; ++i) {
    const Image& image = images[size_t(i)].image;
    check(image.height > 0 && image.width > 0, "[contact_sheet] image {} ({}) is empty", i,
          images[size_t(i)].label);
    scaled.push_back(fit_to_cell(image, options));
    int64_t& row_height = row_heights[size_t(i / columns)];
    row_height = std::max(row_height, scaled.back().height);
    lines = std::max(lines, 1 + int64_t(std::ranges::count(images[size_t(i)].label, '\n')));
  }

  const int64_t margin = options.margin, gap = 4 * options.text_scale;  // gap: between image and label
  const int64_t line_height = text_height(options.text_scale) + options.text_scale;
  const int64_t label_height = gap + lines * line_height - options.text_scale;
  int64_t height = margin;
  for (const int64_t row_height : row_heights) height += row_height + label_height + margin;
  Image sheet = make_image(height, margin + columns * (options.cell_width + margin), 3);
  fill_rectangle(sheet, 0, 0, sheet.width, sheet.height, white);

  for (int64_t i = 0, top = margin; i < count; ++i) {
    if (i > 0 && i % columns == 0) top += row_heights[size_t(i / columns - 1)] + label_height + margin;
    const int64_t left = margin + i % columns * (options.cell_width + margin);
    const Image& image = scaled[size_t(i)];
    const int64_t x = left + (options.cell_width - image.width) / 2;
    const int64_t base = top + row_heights[size_t(i / columns)];  // images of a row are aligned at the bottom
    const int64_t y = base - image.height;
    const MarkStyle style = style_of(images[size_t(i)].mark, margin);
    const int64_t frame = style.thickness;
    fill_rectangle(sheet, x - frame, y - frame, image.width + 2 * frame, image.height + 2 * frame,
                   style.frame);
    paste(sheet, image, y, x);
    int64_t text_top = base + gap;
    for (const std::string& full_line : split_lines(images[size_t(i)].label)) {
      const std::string line = shorten_text(full_line, options.cell_width, options.text_scale);
      render_text(sheet, left + (options.cell_width - text_width(line, options.text_scale)) / 2, text_top,
                  line, style.ink, options.text_scale);
      text_top += line_height;
    }
  }
  return sheet;
}

}  // namespace tandem
