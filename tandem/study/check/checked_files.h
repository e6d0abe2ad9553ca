// The files of a folder that is checked. Unlike for training, a layout that is not as it should be is no
// error: what is there is listed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/data/skipped_sample.h"

namespace tandem {

struct CheckedFile {
  std::string path;         // below the root
  std::int32_t label = -1;  // index in the classes; −1: in no class folder
  std::int32_t part = 0;    // index in the parts
};

struct CheckedFiles {
  std::filesystem::path root;
  std::vector<std::string> parts;  // "train", "val", "test" as their folders are named; "" if there are none
  std::vector<std::string> classes;    // sorted; empty for a folder of images without class folders
  std::vector<CheckedFile> files;      // by part, class, folder and name
  std::vector<SkippedSample> skipped;  // paths below the root: unknown type, outside of classes, unreadable

  std::filesystem::path path_of(const CheckedFile& file) const { return root / file.path; }
};

// Parts are those of part_folders(). Folders in a part are classes, also empty ones; a part without folders
// has images without a class. Folders that cannot be read are among the skipped. Throws Error when the root
// is not a folder or cannot be read.
CheckedFiles find_checked_files(const std::filesystem::path& root);

}  // namespace tandem
