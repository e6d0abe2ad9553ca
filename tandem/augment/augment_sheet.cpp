#include "tandem/augment/augment_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/augment/augment.h"
#include "tandem/augment/photo.h"
#include "tandem/core/check.h"
#include "tandem/files/packed_path.h"
#include "tandem/image/resize_area.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::int64_t cell = sheet_cell;  // 8 times the side of a digit

// Reduces an image to the size of a cell, to save memory: there may be many.
Image shrink_to_cell(Image image) {
  const std::int64_t longer_side = std::max(image.height, image.width);
  if (longer_side <= cell) return image;
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(length * cell) / static_cast<double>(longer_side)));
  };
  return resize_area(image, side(image.height), side(image.width));
}

std::vector<LabeledImage> pixel_row(const Image& image, const std::string& name, std::uint32_t sample,
                                    const Recipe& recipe, const AugmentSheetOptions& options) {
  constexpr std::int64_t max_side = 1 << 16;
  check(image.height >= 1 && image.width >= 1 && image.height <= max_side && image.width <= max_side,
        "[augment] {}: expected sides of 1 to {} pixels, got {}x{}", name, max_side, image.width,
        image.height);
  const ImageSize size{static_cast<int>(image.height), static_cast<int>(image.width), image.channels};
  std::vector<LabeledImage> row{
      {shrink_to_cell(image), fmt::format("{}\n{}x{}", one_line(name), image.width, image.height)}};
  AugmentScratch scratch;
  for (int i = 0; i < options.count; ++i) {
    RandomKey key{.seed = options.seed, .epoch = static_cast<std::uint32_t>(i), .sample = sample};
    std::vector<detail::SampledStep> steps;
    std::string label;
    for (const AugmentStep& step : recipe) {
      key.operation = static_cast<std::uint32_t>(steps.size());
      steps.push_back(detail::sample_step(step, size, key));
      if (!label.empty()) label += '\n';
      label += to_string(steps.back());
    }
    Image out = make_image(image.height, image.width, image.channels);
    augment_image(recipe, steps, size, key, image.pixels.data(), out.pixels.data(), scratch);
    row.push_back({shrink_to_cell(std::move(out)), label.empty() ? "unchanged" : label});
  }
  return row;
}

std::vector<LabeledImage> photo_row(const Image& photo, const std::string& name, std::uint32_t sample,
                                    const PhotoRecipe& recipe, const AugmentSheetOptions& options) {
  const Image rgb = to_rgb(photo);
  std::vector<LabeledImage> row{
      {shrink_to_cell(rgb), fmt::format("{}\n{}x{}", one_line(name), photo.width, photo.height)}};
  PhotoScratch scratch;
  for (int i = 0; i < options.count; ++i) {
    const detail::PhotoArguments arguments = detail::sample_photo(
        recipe, rgb.height, rgb.width,
        {.seed = options.seed, .epoch = static_cast<std::uint32_t>(i), .sample = sample});
    Image out = make_image(recipe.height, recipe.width, 3);
    transform_photo(recipe, arguments, rgb, out.pixels.data(), scratch);
    const PixelBox& box = arguments.box;
    std::string label = fmt::format("{}x{}+{}+{}", box.width, box.height, box.x, box.y);
    if (arguments.flip) label += "\nflipped";
    if (arguments.vertical_flip) label += "\nupside down";
    if (arguments.op_count > 0)
      label += fmt::format("\n{} change{}", arguments.op_count, arguments.op_count == 1 ? "" : "s");
    row.push_back({shrink_to_cell(std::move(out)), label});
  }
  return row;
}

}  // namespace

std::vector<LabeledImage> augment_row(const Image& image, const std::string& name, std::uint32_t sample,
                                      const Transform& transform, const AugmentSheetOptions& options) {
  return transform.resizes() ? photo_row(image, name, sample, transform.photo(), options)
                             : pixel_row(image, name, sample, transform.pixels(), options);
}

Image augment_sheet(std::span<const std::filesystem::path> files, const Transform& transform,
                    const AugmentSheetOptions& options) {
  check(!files.empty(), "[augment] expected at least one image, got none");
  check(options.count >= 1 && options.count <= max_sheet_variants,
        "[augment] expected 1 to {} variants of each image, got {}", max_sheet_variants, options.count);
  const auto images = static_cast<std::int64_t>(files.size()) * (options.count + 1);
  check(images <= max_sheet_images,
        "[augment] expected at most {} images on a sheet, got {} ({} files, {} variants of each)",
        max_sheet_images, images, files.size(), options.count);
  std::vector<LabeledImage> all;
  for (const std::filesystem::path& file : files) {
    const auto sample =
        static_cast<std::uint32_t>(all.size()) / static_cast<std::uint32_t>(options.count + 1);
    const Image image = load_image_file(file);
    const std::string name = file.filename().string();
    for (LabeledImage& one : augment_row(image, name, sample, transform, options))
      all.push_back(std::move(one));
  }
  return contact_sheet(all, {.columns = options.count + 1,
                             .cell_width = cell,
                             .cell_height = cell,
                             .margin = 20,
                             .text_scale = 2,
                             .integer_scale = true});
}

}  // namespace tandem
