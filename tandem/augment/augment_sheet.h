// Contact sheets that show the effect of a recipe: one row per image, first the original, then its variants
// in the first epochs of training, each labeled with its sampled arguments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
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
/// training makes of sample `sample`, labeled with its sampled arguments (a transform that resizes: the crop
/// box and the number of further changes). Images larger than a cell of the sheet are reduced to it. Throws
/// Error for an empty image.
std::vector<LabeledImage> augment_row(const Image& image, const std::string& name, std::uint32_t sample,
                                      const Transform& transform, const AugmentSheetOptions& options = {});

/// The side of a cell of the sheet.
inline constexpr int sheet_cell = 224;

/// One row per file, in their order. Throws Error for a file that is not an image, and for more images than a
/// sheet can hold.
Image augment_sheet(std::span<const std::filesystem::path> files, const Transform& transform,
                    const AugmentSheetOptions& options = {});

}  // namespace tandem
