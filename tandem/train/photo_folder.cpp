#include "tandem/train/photo_folder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/walk_images.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/utf8.h"
#include "tandem/train/data_list.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::array validation_names{"val", "valid", "validation"};

std::string printable(const fs::path& path) {
  return one_line(path.string());
}

// The names of the folders in a folder, without hidden ones.
std::vector<std::string> folders_in(const fs::path& root) try {
  std::vector<std::string> names;
  for (const fs::path& folder : read_folder(root).folders) names.push_back(folder.filename().string());
  return names;
} catch (const Error&) {  // not a folder, or one that cannot be read
  return {};
}

std::optional<fs::path> validation_folder(const fs::path& root) {
  for (const char* const name : validation_names)
    if (is_folder(root / name)) return root / name;
  return std::nullopt;
}

// Whether the folder has train/ with class folders, and not classes of which one is called train.
bool has_train_folder(const fs::path& root) {
  if (!is_folder(root / "train")) return false;
  if (validation_folder(root) || is_folder(root / "test")) return true;
  return folders_in(root).size() == 1 && !folders_in(root / "train").empty();
}

PhotoFiles scan_with_classes(const std::vector<std::string>& classes, const fs::path& root) {
  const ImageFolder folder = scan_image_folder(root, classes);
  return {folder.files, folder.labels, folder.skipped};
}

// Moves images 0, 6, 12, … of each class, or those kept, to the validation set.
void hold_out(FoundPhotos& found, const fs::path& root, const std::set<std::string>& kept_validation) {
  const PhotoFiles all = std::exchange(found.train, {});
  found.train.skipped = all.skipped;
  found.held_out = true;
  std::vector<std::int64_t> counts(found.classes.size());
  for (std::size_t i = 0; i < all.files.size(); ++i) {
    const std::int64_t index = counts[static_cast<std::size_t>(all.labels[i])]++;
    const bool held_out = kept_validation.empty()
                              ? index % validation_stride == 0
                              : kept_validation.contains(listed_name(all.files[i].string()));
    PhotoFiles& part = held_out ? found.validation : found.train;
    part.files.push_back(all.files[i]);
    part.labels.push_back(all.labels[i]);
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    check(counts[i] >= 2,
          "[photos] {}: class '{}' has only one image: expected one for training and one for validation",
          printable(root), one_line(found.classes[i]));
  check(!found.validation.files.empty(),
        "[photos] {}: expected the {} photographs that were held out for validation when the run began, "
        "found none",
        printable(root), kept_validation.size());
  check(!found.train.files.empty(),
        "[photos] {}: expected training photographs, found only those held out for validation",
        printable(root));
}

}  // namespace

FoundPhotos find_photos(const fs::path& root, const std::set<std::string>& kept_validation) {
  const bool has_train = has_train_folder(root);
  const fs::path train = has_train ? root / "train" : root;
  const ImageFolder folder = scan_image_folder(train);
  check(folder.classes.size() >= 2, "[photos] {}: expected two or more classes, got one: '{}'{}",
        printable(train), one_line(folder.classes[0]),
        folder.classes[0] == "train" ? " (expected one folder per class in it)" : "");
  FoundPhotos found{.classes = folder.classes, .train = {folder.files, folder.labels, folder.skipped}};
  const std::optional<fs::path> validation = has_train ? validation_folder(root) : std::nullopt;
  if (validation)
    found.validation = scan_with_classes(found.classes, *validation);
  else
    hold_out(found, train, kept_validation);
  if (!has_train || !is_folder(root / "test")) return found;
  if (!folders_in(root / "test").empty())
    found.test = scan_with_classes(found.classes, root / "test");
  else if (std::error_code packed; !fs::is_empty(root / "test", packed))
    found.unlabeled_images = std::ssize(list_images(root / "test").files);
  return found;
}

std::vector<fs::path> part_folders(const fs::path& root) {
  if (!has_train_folder(root)) return {};
  std::vector<fs::path> folders{root / "train"};
  if (const std::optional<fs::path> validation = validation_folder(root)) folders.push_back(*validation);
  if (is_folder(root / "test")) folders.push_back(root / "test");
  return folders;
}

PhotoFiles find_test_photos(const fs::path& root, const std::vector<std::string>& classes, bool as_trained) {
  if (!folders_in(root / "test").empty()) return scan_with_classes(classes, root / "test");
  if (const std::optional<fs::path> validation = validation_folder(root))
    return scan_with_classes(classes, *validation);
  const bool has_train = has_train_folder(root);
  if (as_trained || has_train) {
    FoundPhotos found = find_photos(root);
    if (found.classes == classes) {
      found.validation.skipped = std::move(found.train.skipped);
      return std::move(found.validation);
    }
  }
  return scan_with_classes(classes, has_train ? root / "train" : root);
}

}  // namespace tandem
