// What a recipe does to a few images, for people to look at: a row an image, first as it is, then as the
// first epochs of a training would draw it, each with its arguments beneath.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/draw.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/image/contact_sheet.h"

namespace tandem {

struct AugmentSheetOptions {
  int count = 8;  // draws of each image
  std::uint64_t seed = 1;
};

inline constexpr int most_sheet_draws = 100;
inline constexpr std::int64_t most_sheet_pictures = 1024;

// "rotate 7.3", "shift 1 -2", as in a recipe.
std::string describe(const DrawnStep& step);

// The image under `name`, then draw 0 … count − 1: epoch i of sample `sample`. Those larger than a cell of
// the sheet are made as small.
std::vector<LabelledImage> augment_row(const Image& image, const std::string& name, std::uint32_t sample,
                                       const Recipe& recipe, const AugmentSheetOptions& options = {});

// The same for a photograph: beneath each draw stand its box and what else was drawn.
std::vector<LabelledImage> photo_row(const Image& photo, const std::string& name, std::uint32_t sample,
                                     const PhotoRecipe& recipe, const AugmentSheetOptions& options = {});

// A row a file, in their order, by a recipe of either kind. Error for a file that is no image, and for more
// than a sheet can hold.
Image augment_sheet(std::span<const std::filesystem::path> files, const std::string& recipe,
                    const AugmentSheetOptions& options = {});

}  // namespace tandem
