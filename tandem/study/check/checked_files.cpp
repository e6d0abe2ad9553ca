#include "tandem/study/check/checked_files.h"

#include <map>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/photo_store.h"
#include "tandem/data/walk_images.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/utf8.h"
#include "tandem/train/photo_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class Finder {
 public:
  explicit Finder(const fs::path& root) { found_.root = root; }

  void add_part(const fs::path& folder, const std::string& name) {
    found_.parts.push_back(name);
    FolderContents contents;
    if (!read(folder, contents)) return;
    const bool has_classes = !contents.folders.empty();
    for (const fs::path& file : contents.others) {
      if (!has_image_ending(file))
        skip(skipped_file(file, SkipKind::unknown_type));
      else if (has_classes)
        skip(skipped_file(file, SkipKind::outside_classes));
      else
        add_file(file, -1);
    }
    for (const fs::path& class_folder : contents.folders) {
      const std::int32_t label =
          numbers_.try_emplace(class_folder.filename().string(), static_cast<std::int32_t>(numbers_.size()))
              .first->second;
      const ImageList images = walk_images(
          class_folder, [&](const fs::path& path, const Error& error) { skip_folder(path, error); });
      for (const fs::path& file : images.files) add_file(file, label);
      for (const SkippedSample& file : images.skipped) skip(file);
    }
  }

  // Classes get the order of their names; they were numbered as they were found.
  CheckedFiles finish() {
    std::vector<std::int32_t> labels(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      labels[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(found_.classes.size());
      found_.classes.push_back(name);
    }
    for (CheckedFile& file : found_.files)
      if (file.label >= 0) file.label = labels[static_cast<std::size_t>(file.label)];
    return std::move(found_);
  }

 private:
  bool read(const fs::path& folder, FolderContents& contents) try {
    contents = read_folder(folder);
    return true;
  } catch (const Error& error) {
    if (folder == found_.root) throw;
    skip_folder(folder, error);
    return false;
  }

  // Without following links: the path as it was walked.
  std::string below_root(const fs::path& path) const { return path.lexically_relative(found_.root).string(); }

  void add_file(const fs::path& file, std::int32_t label) {
    found_.files.push_back({.path = below_root(file),
                            .label = label,
                            .part = static_cast<std::int32_t>(found_.parts.size()) - 1});
  }
  void skip(SkippedSample file) {
    file.name = below_root(file.name);
    found_.skipped.push_back(std::move(file));
  }
  void skip_folder(const fs::path& folder, const Error& error) {
    skip({.name = folder.string(),
          .reason = reason_without_path(error.what(), one_line(folder.string())),
          .kind = SkipKind::unreadable});
  }

  CheckedFiles found_;
  std::map<std::string, std::int32_t> numbers_;  // of the classes
};

}  // namespace

CheckedFiles find_checked_files(const fs::path& root) {
  std::error_code error;
  const bool is_there = is_folder(root);
  check(is_there || fs::exists(root, error), "[check] {}: no such folder", one_line(root.string()));
  check(is_there, "[check] {}: expected a folder of images, got a file", one_line(root.string()));
  Finder finder(root);
  const std::vector<fs::path> parts = part_folders(root);
  if (parts.empty()) finder.add_part(root, "");
  for (const fs::path& part : parts) finder.add_part(part, part.filename().string());
  return finder.finish();
}

}  // namespace tandem
