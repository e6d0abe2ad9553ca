// Folders of photographs in the layout of torchvision's ImageFolder: one subfolder per class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/skipped_sample.h"

namespace tandem {

/// The image files of a folder with one subfolder per class.
struct ImageFolder {
  std::vector<std::string> classes;          ///< names of the subfolders, sorted bytewise
  std::vector<std::filesystem::path> files;  ///< by class, then by folder, then by name
  std::vector<std::int32_t> labels;          ///< the class index of each file
  std::vector<SkippedSample> skipped;        ///< files of unknown type, and those beside the class folders
};

/// Finds jpg, jpeg, png, ppm, pgm, pbm, bmp, webp, tif, tiff, heic and heif files, in any letter case, at any
/// depth below a class folder. Hidden files and folders are ignored; symbolic links are followed, but not in
/// cycles. Files are not opened. Throws Error when there is no class, a class has no images or a name
/// that is not UTF-8, or a folder cannot be read.
ImageFolder scan_image_folder(const std::filesystem::path& root);

/// The same with labels that are indices in `classes`: for a validation set, whose folder may lack a class.
/// Also throws Error for a class folder that is not in `classes`.
ImageFolder scan_image_folder(const std::filesystem::path& root, const std::vector<std::string>& classes);

struct ImageFolderOptions {
  /// The classes and their order; empty: the names of the subfolders, sorted. Give a validation set those of
  /// its training set.
  std::vector<std::string> classes = {};
  PhotoStoreOptions photos = {};
};

/// The photographs of a folder with one subfolder per class, as scan_image_folder() finds them. Throws Error
/// as it does, and as PhotoDataset does.
PhotoDataset image_folder(const std::filesystem::path& root, const ImageFolderOptions& options = {});

/// The image files below a folder without classes.
struct ImageList {
  std::vector<std::filesystem::path> files;  ///< by folder, then by name
  std::vector<SkippedSample> skipped;        ///< files of unknown type
};

/// All images below a folder without classes; for a file, that file whatever its name. Throws Error when the
/// path does not exist or there are no images.
ImageList list_images(const std::filesystem::path& path);

}  // namespace tandem
