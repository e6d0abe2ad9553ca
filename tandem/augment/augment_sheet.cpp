#include "tandem/augment/augment_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/augment/augment.h"
#include "tandem/augment/photo.h"
#include "tandem/augment/recipe.h"
#include "tandem/core/check.h"
#include "tandem/image/decode.h"
#include "tandem/image/resize_area.h"
#include "tandem/report/text.h"

namespace tandem {
namespace {

constexpr std::int64_t cell = 224;  // 8 times the side of a digit

// Photographs are kept no larger than they are shown: there may be many.
Image shrunk(Image image) {
  const std::int64_t longer = std::max(image.height, image.width);
  if (longer <= cell) return image;
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(length * cell) / static_cast<double>(longer)));
  };
  return resize_area(image, side(image.height), side(image.width));
}

// Zero without a sign.
double plain_zero(double value, double least) {
  return std::abs(value) < least ? 0 : value;
}

}  // namespace

std::string describe(const DrawnStep& step) {
  switch (step.kind) {
    case AugmentKind::rotate:
      return fmt::format("rotate {:.1f}", plain_zero(step.degrees, 0.05));
    case AugmentKind::shift:
      return fmt::format("shift {} {}", step.dx, step.dy);
    case AugmentKind::skew:
      return fmt::format("skew {:.2f}", plain_zero(step.tilt, 0.005));
    case AugmentKind::noise:
      return fmt::format("noise {:.2f}", step.noise / (255.0 * 128));
  }
  return {};
}

std::vector<LabelledImage> augment_row(const Image& image, const std::string& name, std::uint32_t sample,
                                       const Recipe& recipe, const AugmentSheetOptions& options) {
  constexpr std::int64_t most_side = 1 << 16;
  check(image.height >= 1 && image.width >= 1 && image.height <= most_side && image.width <= most_side,
        "[augment] {}: expected an image of 1 to {} pixels a side, got {}x{}", name, most_side, image.width,
        image.height);
  const ImageSize size{static_cast<int>(image.height), static_cast<int>(image.width), image.channels};
  std::vector<LabelledImage> row{
      {shrunk(image), fmt::format("{}\n{}x{}", one_line(name), image.width, image.height)}};
  AugmentScratch scratch;
  for (int i = 0; i < options.count; ++i) {
    DrawKey key{.seed = options.seed, .epoch = static_cast<std::uint32_t>(i), .sample = sample};
    std::vector<DrawnStep> drawn;
    std::string label;
    for (const AugmentStep& step : recipe) {
      key.operation = static_cast<std::uint32_t>(drawn.size());
      drawn.push_back(draw_step(step, size, key));
      if (!label.empty()) label += '\n';
      label += describe(drawn.back());
    }
    Image out = make_image(image.height, image.width, image.channels);
    augment_image(recipe, drawn, size, key, image.pixels.data(), out.pixels.data(), scratch);
    row.push_back({shrunk(std::move(out)), label.empty() ? "unchanged" : label});
  }
  return row;
}

std::vector<LabelledImage> photo_row(const Image& photo, const std::string& name, std::uint32_t sample,
                                     const PhotoRecipe& recipe, const AugmentSheetOptions& options) {
  const Image rgb = to_rgb(photo);
  std::vector<LabelledImage> row{
      {shrunk(rgb), fmt::format("{}\n{}x{}", one_line(name), photo.width, photo.height)}};
  PhotoScratch scratch;
  for (int i = 0; i < options.count; ++i) {
    const PhotoDraw draw =
        draw_photo(recipe, rgb.height, rgb.width,
                   {.seed = options.seed, .epoch = static_cast<std::uint32_t>(i), .sample = sample});
    Image out = make_image(recipe.height, recipe.width, 3);
    make_photo(recipe, draw, rgb, out.pixels.data(), scratch);
    std::string label = fmt::format("{}x{}+{}+{}", draw.box.width, draw.box.height, draw.box.x, draw.box.y);
    if (draw.flip) label += "\nflipped";
    if (draw.op_count > 0)
      label += fmt::format("\n{} change{}", draw.op_count, draw.op_count == 1 ? "" : "s");
    row.push_back({shrunk(std::move(out)), label});
  }
  return row;
}

Image augment_sheet(std::span<const std::filesystem::path> files, const std::string& recipe,
                    const AugmentSheetOptions& options) {
  check(!files.empty(), "[augment] expected at least one image, got none");
  check(options.count >= 1 && options.count <= most_sheet_draws,
        "[augment] expected 1 to {} draws of each image, got {}", most_sheet_draws, options.count);
  const auto pictures = static_cast<std::int64_t>(files.size()) * (options.count + 1);
  check(pictures <= most_sheet_pictures,
        "[augment] expected at most {} pictures on a sheet, got {} ({} images, {} draws of each)",
        most_sheet_pictures, pictures, files.size(), options.count);
  std::vector<LabelledImage> all;
  for (const std::filesystem::path& file : files) {
    const auto sample =
        static_cast<std::uint32_t>(all.size()) / static_cast<std::uint32_t>(options.count + 1);
    const Image image = load_image(file);
    const std::string name = file.filename().string();
    for (LabelledImage& one :
         is_photo_recipe(recipe)
             ? photo_row(image, name, sample, parse_photo_recipe(recipe, static_cast<int>(cell)), options)
             : augment_row(image, name, sample, parse_recipe(recipe), options))
      all.push_back(std::move(one));
  }
  return contact_sheet(all, {.columns = options.count + 1,
                             .cell_width = cell,
                             .cell_height = cell,
                             .margin = 20,
                             .text_scale = 2,
                             .whole_factors = true});
}

}  // namespace tandem
