#include "tandem/data/walk_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> extensions{".jpg", ".jpeg", ".png", ".ppm",  ".pgm",  ".pbm",
                                                      ".bmp", ".webp", ".tif", ".tiff", ".heic", ".heif"};

std::string shown(const fs::path& path) {
  return one_line(path.string());
}

// Identifies a folder independently of its path.
struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FolderId&) const = default;
};

// None in a packed set, which has no links.
std::optional<FolderId> id_of(const fs::path& folder) {
  if (find_packed(folder)) return std::nullopt;
  struct stat info {};
  const bool fine = ::stat(folder.c_str(), &info) == 0;
  const int code = errno;
  check(fine, "[folder] {}: cannot be read: {}", shown(folder), std::generic_category().message(code));
  check(S_ISDIR(info.st_mode), "[folder] {}: expected a folder, got a file", shown(folder));
  return FolderId{info.st_dev, info.st_ino};
}

void sort_by_name(FolderContents& contents) {
  for (auto* list : {&contents.folders, &contents.others})
    std::ranges::sort(*list, {}, [](const fs::path& path) -> const std::string& { return path.native(); });
}

// A folder on the current path, with the subfolders that are still to be visited.
struct Level {
  std::optional<FolderId> id;
  std::vector<fs::path> folders;
  std::size_t next = 0;
};

struct FilesOfFolder {
  fs::path folder;
  std::vector<fs::path> files;  // sorted
};

}  // namespace

std::string image_file_endings() {
  std::vector<std::string_view> names;
  for (const std::string_view extension : extensions) names.push_back(extension.substr(1));
  return fmt::format("{}", fmt::join(names, ", "));
}

bool has_image_ending(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(extensions, extension) != extensions.end();
}

SkippedSample skipped_file(const fs::path& path, SkipKind kind) {
  std::string reason = name_of(kind);
  if (kind == SkipKind::unknown_type && path.has_extension())
    reason = fmt::format("unknown type {}", path.extension().string());
  return {.name = path.string(), .reason = reason, .kind = kind};
}

FolderContents read_folder(const fs::path& folder) {
  FolderContents contents;
  if (const std::optional<PackedPath> packed = find_packed(folder)) {
    check(packed->index().has_folder(packed->inside), "[folder] {}: no such folder in the packed set",
          shown(folder));
    const PackedIndex::Names names = packed->index().names_in(packed->inside);
    for (const std::string& name : names.folders) contents.folders.push_back(folder / name);
    for (const std::string& name : names.files) contents.others.push_back(folder / name);
    sort_by_name(contents);
    return contents;
  }
  id_of(folder);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().native().starts_with('.')) continue;
    std::error_code dangling;
    (entry->is_directory(dangling) ? contents.folders : contents.others).push_back(entry->path());
  }
  check(!error, "[folder] {}: cannot be read: {}", shown(folder), error.message());
  sort_by_name(contents);
  return contents;
}

// The order is that of sorted(os.walk()). Iterative: the depth of the tree is not bounded.
ImageList walk_images(const fs::path& root, const UnreadableFolder& on_unreadable) {
  std::vector<FilesOfFolder> found;
  std::vector<Level> levels;
  const auto enter = [&](const fs::path& folder) {
    try {
      const std::optional<FolderId> id = id_of(folder);
      if (id && std::ranges::find(levels, id, &Level::id) != levels.end()) return;  // a cycle of links
      FolderContents contents = read_folder(folder);
      if (!contents.others.empty()) found.push_back({folder, std::move(contents.others)});
      levels.push_back({id, std::move(contents.folders)});
    } catch (const Error& error) {
      if (!on_unreadable) throw;
      on_unreadable(folder, error);
    }
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
  std::ranges::sort(found, {},
                    [](const FilesOfFolder& one) -> const std::string& { return one.folder.native(); });
  ImageList list;
  for (FilesOfFolder& one : found)
    for (fs::path& file : one.files) {
      if (has_image_ending(file))
        list.files.push_back(std::move(file));
      else
        list.skipped.push_back(skipped_file(file, SkipKind::unknown_type));
    }
  return list;
}

}  // namespace tandem
