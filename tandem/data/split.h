// Splits a folder of photographs into one for training and one for validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace tandem {

struct SplitOptions {
  std::int64_t every = 6;
  bool link = false;  // symbolic links to the originals instead of copies
};

struct SplitCounts {
  std::size_t classes = 0, train = 0, val = 0;
};

// Of each class's files in `from`, in the order of image_folder.h, numbers 0, every, 2·every … go to
// TO/val/CLASS, the others to TO/train/CLASS. `from` stays as it is. `to` must not exist or be empty, and not
// lie in `from`; it gets both folders at the end or, when anything fails, nothing.
SplitCounts split_folder(const std::filesystem::path& from, const std::filesystem::path& to,
                         const SplitOptions& options = {});

}  // namespace tandem
