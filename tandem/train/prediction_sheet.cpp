#include "tandem/train/prediction_sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/files/packed_path.h"
#include "tandem/image/render_text.h"
#include "tandem/image/resize_area.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::int64_t cell = 224;

LabeledImage labeled_image(const Prediction& row, const std::vector<std::string>& classes,
                           const PhotoDecodeOptions& decode) {
  const std::string name = one_line(std::filesystem::path(row.path).filename().string());
  if (!row.error.empty()) return error_cell(name, row.error);
  try {
    const Image image = load_image_file(row.path, {.max_pixels = decode.max_pixels, .rgb = true});
    const std::optional<std::size_t> truth = class_of_folder(row.path, classes);
    const bool wrong = truth && *truth != row.chosen;
    return {
        shrink_to_side(image, cell),
        fmt::format("{} {:.1f} %\n{}{}", one_line(classes[row.chosen]), 100 * row.probabilities[row.chosen],
                    wrong ? fmt::format("is {}: ", one_line(classes[*truth])) : "", name),
        !truth  ? SheetMark::none
        : wrong ? SheetMark::wrong
                : SheetMark::right};
  } catch (const Error& error) {
    return error_cell(name, reason_without_path(error.what(), row.path));
  }
}

// Images of an idx file have a path that does not exist.
bool is_image_file(const Prediction& row) {
  std::error_code ignored;
  return !row.error.empty() || std::filesystem::exists(row.path, ignored);
}

}  // namespace

LabeledImage error_cell(const std::string& name, const std::string& reason) {
  constexpr int scale = 2;
  constexpr std::int64_t margin = 12;
  Image background = make_image(cell, cell, 3);
  fill_rectangle(background, 0, 0, cell, cell, {224, 224, 224});
  const std::int64_t advance = text_width("mm", scale) - text_width("m", scale);
  const int letters = static_cast<int>((cell - 2 * margin) / advance);
  std::int64_t y = margin;
  for (const std::string& line : wrap(one_line(reason), letters)) {
    render_text(background, margin, y, line, {96, 32, 32}, scale);
    y += text_height(scale) + 4;
  }
  return {std::move(background), "error\n" + name};
}

std::optional<std::size_t> class_of_folder(const std::string& path, const std::vector<std::string>& classes) {
  const auto found =
      std::ranges::find(classes, std::filesystem::path(path).parent_path().filename().string());
  if (found == classes.end()) return {};
  return static_cast<std::size_t>(found - classes.begin());
}

Image prediction_sheet(const std::vector<Prediction>& predictions, const std::vector<std::string>& classes,
                       const PhotoDecodeOptions& decode, std::size_t count) {
  std::vector<const Prediction*> rows;
  for (const Prediction& row : predictions)
    if (is_image_file(row)) rows.push_back(&row);
  check(!rows.empty(), "[predict] expected image files for a contact sheet, got only images of idx files");
  // Evenly over all of them: sorted files show one class first.
  const std::size_t shown = std::min({count, max_sheet_images, rows.size()});
  for (std::size_t i = 0; i < shown; ++i) rows[i] = rows[i * rows.size() / shown];
  rows.resize(shown);
  std::vector<LabeledImage> images(rows.size());
  parallel_for(std::ssize(rows), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      images[i] = labeled_image(*rows[i], classes, decode);
  });
  return contact_sheet(images, {.cell_width = cell, .cell_height = cell});
}

}  // namespace tandem
