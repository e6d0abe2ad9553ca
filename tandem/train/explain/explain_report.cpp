#include "tandem/train/explain/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tandem/image/encode_png.h"
#include "tandem/image/render_text.h"
#include "tandem/image/save_image.h"
#include "tandem/text/utf8.h"
#include "tandem/train/prediction_sheet.h"

namespace tandem {
namespace {

constexpr std::int64_t gap = 4;  // between a photograph and its map
constexpr int text_scale = 2, jpeg_quality = 88;
constexpr Color ink{32, 32, 40}, paper{255, 255, 255};

bool is_read(const ExplainedImage& image) {
  return image.prediction.error.empty();
}

float probability_of(const ExplainedImage& image) {
  return image.prediction.probabilities[image.explained];
}

void paste(Image& onto, const Image& image, std::int64_t y, std::int64_t x) {
  for (std::int64_t row = 0; row < image.height; ++row)
    std::copy_n(image.row(row), image.row_bytes(), &onto.at(y + row, x));
}

Image side_by_side(const Image& left, const Image& right) {
  Image pair = make_image(left.height, left.width + gap + right.width, 3);
  fill_rectangle(pair, 0, 0, pair.width, pair.height, paper);
  paste(pair, left, 0, 0);
  paste(pair, right, 0, left.width + gap);
  return pair;
}

LabeledImage sheet_cell(const ExplainedImage& image, const std::vector<std::string>& classes) {
  const Prediction& row = image.prediction;
  const std::string name = one_line(std::filesystem::path(row.path).filename().string());
  if (!is_read(image)) return error_cell(name, row.error);
  const bool wrong = image.truth && *image.truth != row.chosen;
  std::string label = fmt::format("{} {:.1f} %", one_line(classes[row.chosen]), 100 * row.probability);
  if (image.explained != row.chosen)
    label = fmt::format("map of {} {:.1f} %, predicted {}", one_line(classes[image.explained]),
                        100 * probability_of(image), label);
  if (image.peak <= 0) label += ", nothing speaks for it";
  label += fmt::format("\n{}{}", wrong ? fmt::format("is {}: ", one_line(classes[*image.truth])) : "", name);
  return {side_by_side(image.photo, image.overlay), label,
          !image.truth ? SheetMark::none
          : wrong      ? SheetMark::wrong
                       : SheetMark::right};
}

bool has_uncovered(const ExplainedImages& explained) {
  return std::ranges::any_of(explained.images, [](const ExplainedImage& image) {
    const HeatMap& heat = image.heat;
    return is_read(image) && (heat.x > 0.5 || heat.y > 0.5);
  });
}

// The scale and its words in lines that fit into the sheet's width.
Image legend(std::int64_t width, bool uncovered) {
  constexpr std::int64_t margin = 20, scale_height = 16, max_scale_width = 256;
  const std::int64_t line_height = text_height(text_scale) + 6;
  const std::int64_t letters = std::max<std::int64_t>(
      (width - 2 * margin) / (text_width("mm", text_scale) - text_width("m", text_scale)), 8);
  const std::vector<std::string> lines = wrap(heat_legend_text(uncovered), static_cast<int>(letters));
  Image image = make_image(scale_height + 10 + line_height * std::ssize(lines) + margin, width, 3);
  fill_rectangle(image, 0, 0, image.width, image.height, paper);
  const std::int64_t scale_width = std::min(max_scale_width, width - 2 * margin);
  if (scale_width > 0) paste(image, heat_scale(scale_height, scale_width), 0, margin);
  std::int64_t y = scale_height + 10;
  for (const std::string& line : lines) {
    render_text(image, margin, y, line, ink, text_scale);
    y += line_height;
  }
  return image;
}

std::string jpeg(const Image& image) {
  const std::vector<std::uint8_t> bytes = encode_jpeg(image, jpeg_quality);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Image explain_sheet(const ExplainedImages& explained, const ModelInfo& info) {
  std::vector<LabeledImage> cells;
  std::int64_t height = 0, width = 0;
  for (const ExplainedImage& image : explained.images) {
    cells.push_back(sheet_cell(image, info.classes));
    if (!is_read(image)) continue;
    height = std::max(height, cells.back().image.height);
    width = std::max(width, cells.back().image.width);
  }
  const Image sheet = contact_sheet(cells, {.cell_width = std::max<std::int64_t>(width, 1),
                                            .cell_height = std::max<std::int64_t>(height, 1),
                                            .text_scale = text_scale});
  const Image below = legend(sheet.width, has_uncovered(explained));
  Image all = make_image(sheet.height + below.height, sheet.width, 3);
  paste(all, sheet, 0, 0);
  paste(all, below, sheet.height, 0);
  return all;
}

ExplainReport explain_report(const ExplainedImages& explained, const ModelInfo& info,
                             ActivationMethod method) {
  ExplainReport report{.facts = {{"model", info.architecture.to_string()},
                                 {"method", method == ActivationMethod::grad_cam ? "Grad-CAM" : "LayerCAM"},
                                 {"transform", info.expects_photos() ? info.transform : "resized by area"}},
                       .pictures = {},
                       .files = explained.files,
                       .uncovered = has_uncovered(explained),
                       .command = {},
                       .provenance = {}};
  for (const ExplainedImage& image : explained.images) {
    ExplainedPicture& picture = report.pictures.emplace_back();
    picture.path = image.prediction.path;
    picture.error = image.prediction.error;
    if (!is_read(image)) continue;
    picture.photo = jpeg(image.photo);
    picture.overlay = jpeg(image.overlay);
    picture.predicted = info.classes[image.prediction.chosen];
    picture.probability = image.prediction.probability;
    picture.explained = info.classes[image.explained];
    picture.explained_probability = probability_of(image);
    if (image.truth) picture.truth = info.classes[*image.truth];
    picture.is_empty = image.peak <= 0;
  }
  return report;
}

std::string explain_json(const ExplainedImages& explained, const ModelInfo& info) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ExplainedImage& image : explained.images) {
    const Prediction& row = image.prediction;
    if (!is_read(image)) {
      list.push_back({{"path", row.path}, {"error", row.error}});
      continue;
    }
    const HeatMap& heat = image.heat;
    std::vector<std::vector<float>> rows;
    for (auto at = heat.values.begin(); at != heat.values.end(); at += heat.width)
      rows.emplace_back(at, at + heat.width);
    list.push_back({{"path", row.path},
                    {"class", info.classes[row.chosen]},
                    {"probability", row.probability},
                    {"explained", info.classes[image.explained]},
                    {"peak", image.peak},
                    {"map", rows},
                    {"covers", {heat.x, heat.y, heat.covered_width, heat.covered_height}}});
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
