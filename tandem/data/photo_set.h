// Photographs made ready for a network all at once, for evaluation and prediction: read, decoded and
// transformed in parallel into images of one size.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/image_set.h"
#include "tandem/data/photo_store.h"

namespace tandem {

struct MadePhotos {
  Tensor images;                     // u8, (files, height, width, 3); black where there is a reason
  std::vector<std::string> reasons;  // why a file could not be read; empty where it could
};

MadePhotos make_photos(std::span<const std::filesystem::path> files, const PhotoRecipe& recipe,
                       const PhotoReading& reading = {});

// Labelled photographs, those that could be read.
struct PhotoSet {
  ImageSet images;
  std::vector<std::string> names;  // their paths
  std::vector<SkippedSample> bad;
};

// Error where they would take more than half of the free memory, where none can be read, and, with
// OnBadImage::fail, where one cannot.
PhotoSet make_photo_set(const std::vector<std::filesystem::path>& files,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe, const PhotoReading& reading = {},
                        OnBadImage on_bad_image = OnBadImage::skip);

// The same of photographs that are drawn: `photo` is called from many threads.
PhotoSet make_photo_set(const std::function<Image(std::size_t)>& photo, const std::vector<std::string>& names,
                        const std::vector<std::int32_t>& labels, const std::vector<std::string>& classes,
                        const PhotoRecipe& recipe);

}  // namespace tandem
