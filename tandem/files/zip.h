// Reads zip archives in memory: stored and deflated entries, zip64, data descriptors. Local headers must
// agree with the central directory. Entries that overlap, exceed the file, are encrypted or decompress to
// absurd sizes are refused before memory is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;   // decompressed
  std::string_view packed;  // a view into the archive
  std::uint32_t crc = 0;
  bool deflated = false;
  bool link = false;  // a symbolic link, with its target as contents
};

// By the magic bytes.
bool is_zip(std::string_view bytes);

// The files of an archive in the order of its directory, without folders. Throws Error for an invalid
// archive, duplicate names, or deflated entries that decompress to more than 64 MiB plus 20 times the
// archive's size; `name` is the file name in its message.
std::vector<ZipEntry> read_zip(std::string_view archive, const std::string& name);

// The contents after a check of the CRC: a view into the archive if stored, else into `unpacked`.
std::string_view unpack_entry(const ZipEntry& entry, std::string& unpacked, const std::string& name);

}  // namespace tandem
