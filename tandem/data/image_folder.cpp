#include "tandem/data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "tandem/core/check.h"
#include "tandem/data/walk_images.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) {
  return one_line(path.string());
}

}  // namespace

ImageFolder scan_image_folder(const fs::path& root) {
  const FolderContents contents = read_folder(root);
  check(!contents.folders.empty(), "[folder] {}: expected a folder for each class in it, got none{}",
        shown(root), std::ranges::any_of(contents.others, has_image_ending) ? ", only images" : "");
  ImageFolder result;
  for (const fs::path& file : contents.others)
    result.skipped.push_back(
        skipped_file(file, has_image_ending(file) ? SkipKind::outside_classes : SkipKind::unknown_type));
  for (const fs::path& folder : contents.folders) {
    const auto label = static_cast<std::int32_t>(result.classes.size());
    result.classes.push_back(folder.filename().string());
    check(is_utf8(result.classes.back()), "[folder] {}: expected the name of a class in UTF-8, got '{}'",
          shown(root), one_line(result.classes.back()));  // model files store no other
    const auto [files, skipped] = walk_images(folder);
    check(!files.empty(), "[folder] {}: class '{}' has no images ({})", shown(root),
          one_line(result.classes.back()), image_file_endings());
    result.files.insert(result.files.end(), files.begin(), files.end());
    result.skipped.insert(result.skipped.end(), skipped.begin(), skipped.end());
    result.labels.resize(result.files.size(), label);
  }
  return result;
}

ImageFolder scan_image_folder(const fs::path& root, const std::vector<std::string>& classes) {
  ImageFolder folder = scan_image_folder(root);
  std::vector<std::int32_t> label;
  for (const std::string& name : folder.classes) {
    const auto found = std::ranges::find(classes, name);
    check(found != classes.end(), "[photos] {}: class '{}' is not one of the {} known classes: {}",
          shown(root), one_line(name), classes.size(),
          one_line(fmt::format(
              "{}", fmt::join(classes.begin(),
                              classes.begin() + std::min<std::ptrdiff_t>(8, std::ssize(classes)), ", "))));
    label.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  for (std::int32_t& index : folder.labels) index = label[static_cast<std::size_t>(index)];
  folder.classes = classes;
  return folder;
}

PhotoDataset image_folder(const fs::path& root, const ImageFolderOptions& options) {
  const ImageFolder folder =
      options.classes.empty() ? scan_image_folder(root) : scan_image_folder(root, options.classes);
  return {folder.files, folder.labels, folder.classes, options.photos};
}

ImageList list_images(const fs::path& path) {
  std::error_code error;
  const bool folder = is_folder(path);
  check(folder || fs::exists(path, error) || bytes_in_file(path), "[folder] {}: no such file or folder",
        shown(path));
  if (!folder) return {.files = {path}};
  ImageList list = walk_images(path);
  check(!list.files.empty(), "[folder] {}: has no images ({})", shown(path), image_file_endings());
  return list;
}

}  // namespace tandem
