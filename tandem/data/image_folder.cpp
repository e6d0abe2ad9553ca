#include "tandem/data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 11> extensions{".jpg",  ".jpeg", ".png",  ".ppm",  ".pgm", ".bmp",
                                                      ".webp", ".tif",  ".tiff", ".heic", ".heif"};

std::string shown(const fs::path& path) {
  return one_line(path.string());
}

bool has_image_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(extensions, extension) != extensions.end();
}

// Identifies a folder independently of its path.
struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FolderId&) const = default;
};

FolderId id_of(const fs::path& folder) {
  struct stat info {};
  const bool fine = ::stat(folder.c_str(), &info) == 0;
  const int code = errno;
  check(fine, "[folder] {}: cannot be read: {}", shown(folder), std::generic_category().message(code));
  check(S_ISDIR(info.st_mode), "[folder] {}: expected a folder, got a file", shown(folder));
  return {info.st_dev, info.st_ino};
}

struct Contents {
  std::vector<fs::path> folders, others;  // sorted by name, without hidden ones
};

Contents contents_of(const fs::path& folder) {
  Contents contents;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().native().starts_with('.')) continue;
    std::error_code dangling;  // a dangling link counts as a file
    (entry->is_directory(dangling) ? contents.folders : contents.others).push_back(entry->path());
  }
  check(!error, "[folder] {}: cannot be read: {}", shown(folder), error.message());
  for (auto* list : {&contents.folders, &contents.others})
    std::ranges::sort(*list, {}, [](const fs::path& path) -> const std::string& { return path.native(); });
  return contents;
}

// A folder on the current path, with the subfolders that are still to be visited.
struct Level {
  FolderId id;
  std::vector<fs::path> folders;
  std::size_t next = 0;
};

SkippedSample skipped_file(const fs::path& path, SkipKind kind) {
  std::string reason = name_of(kind);
  if (kind == SkipKind::unknown_type && path.has_extension())
    reason = fmt::format("unknown type {}", path.extension().string());
  return {.name = path.string(), .reason = reason, .kind = kind};
}

// Sorted by folder, then by name, as sorted(os.walk()) does. Iterative: the depth of the tree is not bounded.
ImageList collect_images(const fs::path& root) {
  std::vector<fs::path> files;
  std::vector<Level> levels;
  const auto enter = [&](const fs::path& folder) {
    const FolderId id = id_of(folder);
    if (std::ranges::find(levels, id, &Level::id) != levels.end()) return;  // a cycle of links
    Contents contents = contents_of(folder);
    std::ranges::copy(contents.others, std::back_inserter(files));
    levels.push_back({id, std::move(contents.folders)});
  };
  enter(root);
  while (!levels.empty()) {
    Level& level = levels.back();
    if (level.next == level.folders.size()) {
      levels.pop_back();
      continue;
    }
    const fs::path folder = level.folders[level.next++];  // a copy: enter() may reallocate `levels`
    enter(folder);
  }
  std::ranges::sort(files, {}, [](const fs::path& file) {
    return std::pair(file.parent_path().native(), file.filename().native());
  });
  ImageList list;
  for (const fs::path& file : files) {
    if (has_image_name(file))
      list.files.push_back(file);
    else
      list.skipped.push_back(skipped_file(file, SkipKind::unknown_type));
  }
  return list;
}

std::string known_extensions() {
  std::vector<std::string_view> names;
  for (const std::string_view extension : extensions) names.push_back(extension.substr(1));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

ImageFolder scan_image_folder(const fs::path& root) {
  id_of(root);
  const Contents contents = contents_of(root);
  check(!contents.folders.empty(), "[folder] {}: expected a folder for each class in it, got none{}",
        shown(root), std::ranges::any_of(contents.others, has_image_name) ? ", only images" : "");
  ImageFolder result;
  for (const fs::path& file : contents.others)
    result.skipped.push_back(
        skipped_file(file, has_image_name(file) ? SkipKind::outside_classes : SkipKind::unknown_type));
  for (const fs::path& folder : contents.folders) {
    const auto label = static_cast<std::int32_t>(result.classes.size());
    result.classes.push_back(folder.filename().string());
    check(is_utf8(result.classes.back()), "[folder] {}: expected the name of a class in UTF-8, got '{}'",
          shown(root), one_line(result.classes.back()));  // model files store no other
    const auto [files, skipped] = collect_images(folder);
    check(!files.empty(), "[folder] {}: class '{}' has no images ({})", shown(root),
          one_line(result.classes.back()), known_extensions());
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
  const fs::file_status status = fs::status(path, error);
  check(fs::exists(status), "[folder] {}: no such file or folder", shown(path));
  if (!fs::is_directory(status)) return {.files = {path}};
  ImageList list = collect_images(path);
  check(!list.files.empty(), "[folder] {}: has no images ({})", shown(path), known_extensions());
  return list;
}

}  // namespace tandem
