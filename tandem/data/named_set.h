// Images for evaluation, with the name of each and what was left out.
#pragma once

#include <string>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/data/skipped_sample.h"

namespace tandem {

/// Labeled images without the unreadable ones.
struct PhotoSet {
  ImageSet images;
  std::vector<std::string> names;  ///< the path or description of each image
  std::vector<SkippedSample> bad;  ///< photographs that could not be read
};

}  // namespace tandem
