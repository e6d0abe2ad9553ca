// Which photographs of a folder are for training, validation and test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tandem/data/image_folder.h"

namespace tandem {

struct PhotoFiles {
  std::vector<std::filesystem::path> files;
  std::vector<std::int32_t> labels;
  std::vector<SkippedSample> skipped = {};  // not images, or in no class
};

struct FoundPhotos {
  std::vector<std::string> classes;
  PhotoFiles train;
  PhotoFiles validation;
  std::optional<PhotoFiles> test;
  bool held_out = false;              // the validation photographs are a part of the training folder
  std::int64_t unlabeled_images = 0;  // in test/, without class folders
};

inline constexpr std::int64_t validation_stride = 6;  // the default of split_folder()

// The folder has train/, which has one folder per class, and it may have val/ (or valid/ or validation/) and
// test/ with the same classes; or it has the class folders itself. Without a validation folder, images 0, 6,
// 12, … of each class are held out for validation, as split_folder() does. A test/ without class folders has
// no labels and is only counted. Throws Error for other layouts, and when there are too few images.
// Files in `kept_validation`, by their listed_name(), are held out instead, if there are any.
FoundPhotos find_photos(const std::filesystem::path& root, const std::set<std::string>& kept_validation = {});

// The folders of the parts of a divided data set, as find_photos() uses them: train/, then those of val/ (or
// valid/ or validation/) and test/ that are there. Empty for a folder that has the class folders itself.
std::vector<std::filesystem::path> part_folders(const std::filesystem::path& root);

// Labeled photographs of the classes to evaluate a model: ROOT/test, else ROOT/val, else ROOT itself, or
// ROOT/train if it has no other. Where images are held out for validation, only those if the classes are the
// same and `as_trained` or the folder has train/.
PhotoFiles find_test_photos(const std::filesystem::path& root, const std::vector<std::string>& classes,
                            bool as_trained);

}  // namespace tandem
