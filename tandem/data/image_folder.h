// Folders of photographs in the layout of torchvision's ImageFolder: one subfolder per class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

/// The image files of a folder with one subfolder per class.
struct ImageFolder {
  std::vector<std::string> classes;          ///< names of the subfolders, sorted bytewise
  std::vector<std::filesystem::path> files;  ///< by class, then by folder, then by name
  std::vector<std::int32_t> labels;          ///< the class index of each file
};

/// Finds jpg, jpeg, png, ppm, pgm, bmp and webp files, in any letter case, at any depth below a class folder.
/// Hidden files and folders are ignored; symbolic links are followed, but not in cycles. Files are not
/// opened. Throws Error when there is no class, a class has no images, or a folder cannot be read.
ImageFolder scan_image_folder(const std::filesystem::path& root);

/// All images below a folder without classes, in the same order; for a file, that file whatever its name.
/// Throws Error when the path does not exist or there are no images.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& path);

}  // namespace tandem
