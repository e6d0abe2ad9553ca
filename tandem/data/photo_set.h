// Photographs loaded all at once, for evaluation and prediction: read, decoded and transformed in parallel
// into images of one size.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/named_set.h"
#include "tandem/data/photo_store.h"

namespace tandem {

struct DecodedImages {
  Tensor images;               // u8, (files, height, width, 3); black where a file could not be read
  std::vector<BadSample> bad;  // per file; an empty reason: it was read
};

DecodedImages load_photos(std::span<const std::filesystem::path> files, const PhotoRecipe& recipe,
                          const PhotoDecodeOptions& decode = {});

// Labeled photographs without the unreadable ones. Error when the images would need more than half of the
// free memory, when no file can be read, and, with OnBadImage::fail, when one file cannot.
PhotoSet load_photo_set(const std::vector<std::filesystem::path>& files,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe, const PhotoDecodeOptions& decode = {},
                        OnBadImage on_bad_image = OnBadImage::skip);

}  // namespace tandem
