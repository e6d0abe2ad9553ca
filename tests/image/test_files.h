// Helpers for the image tests: a temporary folder and reading and writing the bytes of files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/image/decode.h"
#include "tests/core/error_text.h"
#include "tests/paths.h"

namespace tandem {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-image-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  size_t count() const {
    return size_t(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(source_folder) / "tests/golden/image";
}

// Whether this build decodes a stored file, by the ending of its name.
inline bool can_decode_file(const std::filesystem::path& path) {
  const std::string kind = path.extension().string();
  return kind == ".webp"                     ? can_decode("WebP")
         : kind == ".tif" || kind == ".tiff" ? can_decode("TIFF")
         : kind == ".heic"                   ? can_decode("HEIC")
                                             : kind != ".raw" && kind != ".json";
}

inline std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  EXPECT_TRUE(file) << path;
  std::vector<uint8_t> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void put_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::vector<uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace tandem
