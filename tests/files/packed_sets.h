// Packed sets for tests.
#pragma once

#include <map>
#include <string>

#include "tandem/files/packed_set.h"
#include "tests/files/test_files.h"

namespace tandem {

inline void write_packed(const std::filesystem::path& path, const std::map<std::string, std::string>& files,
                         const std::string& options = "{}") {
  PackedWriter writer("test", path);
  for (const auto& [name, bytes] : files) writer.add(name, bytes);
  writer.finish(options);
}

inline std::string packed_bytes(const std::map<std::string, std::string>& files,
                                const std::string& options = "{}") {
  const TempFolder folder;
  write_packed(folder / "set.tandem", files, options);
  return get_bytes(folder / "set.tandem");
}

}  // namespace tandem
