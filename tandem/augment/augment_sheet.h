// Contact sheets that show the effect of a recipe: one row per image, first the original, then its variants
// in the first epochs of training, each labeled with its sampled arguments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/photo_recipe.h"
#include "tandem/augment/recipe.h"
#include "tandem/image/contact_sheet.h"

namespace tandem {

/// What a sheet shows.
struct AugmentSheetOptions {
  int count = 8;  ///< variants of each image
  std::uint64_t seed = 1;
};

/// Limits of a sheet: variants of each image, and images in total.
inline constexpr int max_sheet_variants = 100;
inline constexpr std::int64_t max_sheet_images = 1024;

/// One row: the image with the label `name`, then variants 0 … count − 1, where variant i is what epoch i of
/// training makes of sample `sample`. Images larger than a cell of the sheet are reduced to it. Throws Error
/// for an empty image.
std::vector<LabeledImage> augment_row(const Image& image, const std::string& name, std::uint32_t sample,
                                      const Recipe& recipe, const AugmentSheetOptions& options = {});

/// The same for a photograph: the label of a variant has its crop box and the number of further changes.
std::vector<LabeledImage> photo_row(const Image& photo, const std::string& name, std::uint32_t sample,
                                    const PhotoRecipe& recipe, const AugmentSheetOptions& options = {});

/// One row per file, in their order; the recipe is parsed by parse_recipe() or parse_photo_recipe(). Throws
/// Error for a file that is not an image, and for more images than a sheet can hold.
Image augment_sheet(std::span<const std::filesystem::path> files, const std::string& recipe,
                    const AugmentSheetOptions& options = {});

}  // namespace tandem
