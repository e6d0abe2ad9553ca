// Reads zip archives that are in memory: stored and deflated entries, zip64, data descriptors. The central
// directory is the truth, and what stands before each entry must agree with it; entries that overlap, leave
// the file, are encrypted or unpack to absurd sizes are refused before memory is taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;   // unpacked
  std::string_view packed;  // in the archive
  std::uint32_t crc = 0;
  bool deflated = false;
};

bool is_zip(std::string_view bytes);  // by the magic bytes

// The files of an archive in the order of its directory, folders left out. Names must differ. All that is
// deflated may unpack to 64 MiB plus 20 times the archive's size. `name` stands in errors.
std::vector<ZipEntry> read_zip(std::string_view archive, const std::string& name);

// The contents, their CRC checked: a part of the archive when stored, else unpacked into `unpacked`.
std::string_view unpack_entry(const ZipEntry& entry, std::string& unpacked, const std::string& name);

}  // namespace tandem
