// Folders of photographs as torchvision lays them out: a folder a class, its name the class's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct ImageFolder {
  std::vector<std::string> classes;          // sorted bytewise
  std::vector<std::filesystem::path> files;  // class by class; within one by folder, then by name
  std::vector<std::int32_t> labels;          // of each file: the place of its class
};

// Finds jpg, jpeg, png, ppm, pgm, bmp and webp, in any case, at any depth below a class. Hidden files and
// folders are ignored; links are followed, but not into a folder that is on the way already. A class without
// images, no class and a folder that cannot be read are Errors. Files are not opened.
ImageFolder scan_image_folder(const std::filesystem::path& root);

// All images below a folder without classes, in the same order, or the file itself whatever its name.
std::vector<std::filesystem::path> list_images(const std::filesystem::path& path);

}  // namespace tandem
