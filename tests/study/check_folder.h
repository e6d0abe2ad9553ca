// A folder with known problems, of rendered plates: copies, near copies, leaks and swapped labels.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tandem/data/synthetic/plates.h"
#include "tandem/image/resize.h"
#include "tandem/image/save_image.h"
#include "tests/image/test_files.h"

namespace tandem {

class PlantedFolder {
 public:
  // Plates of both classes, every fifth in test/, all others in train/; `swapped` of them in the wrong class.
  PlantedFolder(const std::filesystem::path& root, std::uint64_t count, std::uint64_t swapped = 0,
                std::int64_t side = 128)
      : root_(root), side_(side) {
    for (const char* part : {"train", "test"})
      for (const bool dirty : {false, true})
        std::filesystem::create_directories(root / part / plate_class(dirty));
    for (std::uint64_t i = 0; i < swapped; ++i) swapped_.insert(i * (count / swapped) / 5 * 5 + i % 4);
    for (std::uint64_t i = 0; i < count; ++i) put_jpeg(root_ / name(i), plate(i), 90);
    for (const std::uint64_t i : swapped_) mislabeled.insert(name(i));
  }

  // The path of plate i below the root.
  std::string name(std::uint64_t i) const {
    return std::string(part(i)) + "/" + plate_class(label(i)) + "/plate " + std::to_string(1000 + i) + ".jpg";
  }
  Image plate(std::uint64_t i) const { return render_plate(21, i / 2, i % 2 == 1, side_); }

  // A file with the same bytes, in the other part if it is a leak.
  void copy_plate(std::uint64_t i, bool leak) const {
    std::filesystem::copy_file(root_ / name(i),
                               copy_of(i, leak ? (part(i) == "test" ? "train" : "test") : part(i)));
  }
  // Resized, compressed again or cropped by 2 %.
  void change_plate(std::uint64_t i, int how) const {
    Image image = plate(i);
    const std::int64_t edge = (2 * side_ + 99) / 100;
    if (how % 3 == 0) image = resize(image, side_ * 3 / 5, side_ * 3 / 5);
    if (how % 3 == 1) image = copy(crop(image, {edge, 0, side_ - edge, side_ - edge}));
    put_jpeg(copy_of(i, part(i)), image, how % 3 == 2 ? 40 : 90);
  }

  std::set<std::string> mislabeled;  // paths below the root

 private:
  static void put_jpeg(const std::filesystem::path& path, const Image& image, int quality) {
    const std::vector<std::uint8_t> jpeg = encode_jpeg(image, quality);
    put_bytes(path, {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
  }
  static std::string part(std::uint64_t i) { return i % 5 == 4 ? "test" : "train"; }
  bool label(std::uint64_t i) const { return (i % 2 == 1) != swapped_.contains(i); }
  std::filesystem::path copy_of(std::uint64_t i, const std::string& part) const {
    return root_ / part / plate_class(label(i)) / ("copy of " + std::to_string(1000 + i) + ".jpg");
  }

  std::filesystem::path root_;
  std::int64_t side_;
  std::set<std::uint64_t> swapped_;
};

}  // namespace tandem
