// Reads ustar archives held in memory: enough to take a few files out of a package.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct TarEntry {
  std::string name;           // as stored: "package/data/train-labels-idx1-ubyte"
  std::string_view contents;  // a view into the archive
};

// The regular files in the archive, which must outlive them. Headers are believed after their checksum, sizes
// after they fit the archive; `name` stands in errors.
std::vector<TarEntry> read_tar(std::string_view archive, const std::string& name);

}  // namespace tandem
