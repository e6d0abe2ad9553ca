// Packed sets (NAME.tandem): the image files of a folder in one file, for sets that are read many times.
//
//   header    64 bytes: magic, version, checksum, the size of the file, where the index is
//   files     each begins at a multiple of 64 bytes
//   index     per file: offset, size, CRC-32C and the end of its name; then all names, then the options
//
// Numbers are little-endian. Names are paths below the folder, sorted bytewise: "train/cat/1.jpg". Options
// are JSON that describes how the set was made. What a header claims is checked before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/streamed_file.h"

namespace tandem {

inline constexpr std::string_view packed_set_ending = ".tandem";

// By the magic bytes.
bool is_packed_set(std::string_view bytes);

// The index of a packed set in memory, which must outlive it.
class PackedIndex {
 public:
  // Throws Error for an invalid, truncated or overlong set; `name` is the file name in its message.
  PackedIndex(std::string_view file, const std::string& name);

  std::int64_t count() const { return count_; }
  std::string_view name(std::int64_t i) const;
  // Not compared with their checksum.
  std::string_view bytes(std::int64_t i) const;
  // Whether the bytes have their checksum.
  bool is_intact(std::int64_t i) const;
  std::string_view options() const { return options_; }

  std::optional<std::int64_t> find(std::string_view name) const;
  // Of a folder: "", "train" or "train/cat".
  bool has_folder(std::string_view folder) const;
  struct Names {
    std::vector<std::string> folders, files;
  };
  Names names_in(std::string_view folder) const;

 private:
  struct Entry;
  Entry entry(std::int64_t i) const;
  std::int64_t lower_bound(std::string_view name) const;

  std::string_view file_, entries_, names_, options_;
  std::int64_t count_ = 0;
};

// Writes a packed set, which exists when finish() has returned.
class PackedWriter {
 public:
  PackedWriter(const char* op, const std::filesystem::path& path);

  // In the order of the names. Throws Error for a name that a set cannot have.
  void add(std::string_view name, std::string_view bytes);
  void finish(std::string_view options);

  std::uint64_t bytes() const { return offset_; }

 private:
  const char* op_;
  StreamedFile file_;
  std::uint64_t offset_ = 0;
  std::string entries_, names_, last_name_;
};

}  // namespace tandem
