// Paths into packed sets: where set.tandem is a packed set, set.tandem/train/cat/1.jpg is a file in it, and
// set.tandem and set.tandem/train are folders. So whatever reads a folder of photographs reads a packed set.
// Opened sets stay mapped. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/files/packed_set.h"
#include "tandem/image/decode.h"

namespace tandem {

// A packed set that is mapped into memory.
class PackedSet;

struct PackedPath {
  std::shared_ptr<const PackedSet> set;
  std::string inside;  // "train/cat"; "" is the set itself

  const PackedIndex& index() const;
};

// None for a path that does not lead to or into a packed set. Throws Error for a set that is not valid. A set
// that was replaced or changed is opened again: a shorter file must not be read beyond its end.
std::optional<PackedPath> find_packed(const std::filesystem::path& path);

// The bytes of a file in a packed set.
struct PackedFile {
  std::shared_ptr<const PackedSet> set;
  std::string_view bytes;
};

// None for a path that does not lead into a packed set. Throws Error for a file that the set does not have,
// and a DecodeError for one that does not have its checksum, which is compared when it is first opened.
std::optional<PackedFile> open_packed_file(const char* op, const std::filesystem::path& path);

// Whether the path is a folder, or one of a packed set. Throws Error for a packed set that is not valid.
bool is_folder(const std::filesystem::path& path);

// load_image(), also of a file in a packed set.
Image load_image_file(const std::filesystem::path& path, const LoadOptions& options = {});

// Of a regular file, or of one in a packed set; none if there is none.
std::optional<std::uint64_t> bytes_in_file(const std::filesystem::path& path);

}  // namespace tandem
