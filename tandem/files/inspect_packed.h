// Inspects packed sets: what they hold, and whether it is intact.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct TextStyle;

/// Summary of a packed set.
struct PackedFacts {
  struct Folder {
    std::string name;
    std::int64_t images = 0;
    std::uint64_t bytes = 0;
  };

  std::string file;
  std::uint64_t bytes = 0;
  std::int64_t images = 0;
  std::string options;               ///< of tandem pack, as JSON
  std::vector<Folder> folders;       ///< those with images in them
  std::vector<std::string> damaged;  ///< images that do not have their checksum
  std::string problem;               ///< that there are some; else empty
};

/// By the first bytes.
bool is_packed_file(const std::filesystem::path& path);

/// Compares the checksum of every image. Throws Error for a file that is not a packed set.
PackedFacts inspect_packed(const std::filesystem::path& path);

/// A table for a terminal.
std::string to_text(const PackedFacts& facts, const TextStyle& style);

/// JSON: {"file", "format": "packed set", "bytes", "images", "options": {…}, "folders": [{"name", "images",
/// "bytes"}, …], "damaged": […]}.
std::string to_json_text(const PackedFacts& facts);

}  // namespace tandem
