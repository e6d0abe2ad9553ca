// Splits a folder of photographs into one for training and one for validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "tandem/data/skipped_sample.h"

namespace tandem {

struct SplitOptions {
  std::int64_t every = 6;  ///< one file in `every` is held out for validation; at least 2
  bool link = false;       ///< symbolic links to the originals instead of copies
};

/// The number of classes, and of files in each part; what was left out.
struct SplitCounts {
  std::size_t classes = 0;
  std::size_t train = 0;
  std::size_t val = 0;
  std::vector<SkippedSample> skipped;  ///< files of `from` in neither part, also listed in TO/not-copied.csv
};

/// Splits a folder with one subfolder per class. Of each class's files, in the order of scan_image_folder(),
/// those with index 0, every, 2·every … go to TO/val/CLASS, the others to TO/train/CLASS. `from` is not
/// changed. `to` must not exist or be empty, and not lie in `from`. It gets both folders at the end; when
/// anything fails it gets nothing, and Error is thrown. Each class needs at least two files.
SplitCounts split_folder(const std::filesystem::path& from, const std::filesystem::path& to,
                         const SplitOptions& options = {});

}  // namespace tandem
