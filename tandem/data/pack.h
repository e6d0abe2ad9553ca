// Packs the images of a folder into one file that is read many times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "tandem/data/skipped_sample.h"

namespace tandem {

/// How a packed set stores images.
enum class PackStore : std::uint8_t {
  pixels,   ///< RGB that needs no decoding
  jpeg,     ///< encoded again, unless the image is small enough already
  original  ///< the bytes of the files
};
/// "pixels", "jpeg", "original"
const char* name_of(PackStore store);

struct PackOptions {
  PackStore store = PackStore::pixels;
  /// The shorter side of larger images becomes this, resized as Pillow does; not for PackStore::original.
  std::int64_t side = 256;
  int quality = 90;                       ///< of PackStore::jpeg, 1 to 100
  std::int64_t max_pixels = 179'000'000;  ///< larger images are not decoded
  bool overwrite = false;                 ///< an existing file
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = {};
};

struct PackCounts {
  std::int64_t images = 0;
  std::uint64_t bytes_before = 0;  ///< of the image files
  std::uint64_t bytes = 0;         ///< of the packed set
  /// Images that could not be read: they have their bytes in the set (none if there are none), so that the
  /// numbers of the others stay the same and readers skip them for the same reason.
  std::vector<SkippedSample> unreadable;
  std::vector<SkippedSample> skipped;  ///< files that are not images, and not in the set
};

/// Packs all images below a folder, or of another packed set, with their paths below it, so that parts and
/// classes stay the same. `to` must end in .tandem. It is written at the end; when anything fails, nothing
/// is. Throws Error when there are no images, for a file that exists, and if it cannot be written.
PackCounts pack_images(const std::filesystem::path& from, const std::filesystem::path& to,
                       const PackOptions& options = {});

}  // namespace tandem
