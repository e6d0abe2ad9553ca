// Files with the same bytes, and images that show the same picture: resized, compressed again, or cropped by
// about 2 %.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/study/check/survey.h"

namespace tandem {

// Files that are copies of each other.
struct CopyGroup {
  std::vector<std::int64_t> files;      // two or more, ascending
  std::vector<std::int64_t> originals;  // of each file: the first one with the same bytes

  bool is_identical() const {
    for (const std::int64_t original : originals)
      if (original != originals[0]) return false;
    return true;
  }
};

struct Copies {
  std::vector<CopyGroup> groups;  // by their first file
  // Files that look like so many others that they were compared with some of them only.
  std::int64_t partly_compared = 0;
};

// Images are read again where hashes are near. The time grows with the number of files, whatever they show.
Copies find_copies(const CheckedFiles& files, std::span<const ImageFacts> images, std::int64_t max_pixels,
                   const CheckProgress& on_progress = {});

}  // namespace tandem
