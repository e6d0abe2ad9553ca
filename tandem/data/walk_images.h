// Finding the image files below a folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/data/image_folder.h"

namespace tandem {

// "jpg, jpeg, png, …": how the names of image files end.
std::string image_file_endings();
// In any letter case.
bool has_image_ending(const std::filesystem::path& path);

// "unknown type .txt" for a file that is not read because of its name, else the name of the kind.
SkippedSample skipped_file(const std::filesystem::path& path, SkipKind kind);

struct FolderContents {
  std::vector<std::filesystem::path> folders, others;  // sorted by name, without hidden ones
};

// Of a folder, also of one in a packed set. Links are followed; a dangling one counts as a file. Throws Error
// when it is not a folder or cannot be read.
FolderContents read_folder(const std::filesystem::path& folder);

// Gets the Error of a folder that cannot be read.
using UnreadableFolder = std::function<void(const std::filesystem::path& folder, const Error& error)>;

// All files below a folder, sorted by folder, then by name. A folder that is inside itself through links is
// entered once. Throws Error when a folder cannot be read, unless there is a function that gets it.
ImageList walk_images(const std::filesystem::path& root, const UnreadableFolder& on_unreadable = {});

}  // namespace tandem
