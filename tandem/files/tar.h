// Reads ustar archives in memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct TarEntry {
  std::string name;           // as stored: "package/data/train-labels-idx1-ubyte"
  std::string_view contents;  // a view into the archive
};

// The regular files of the archive, as views into it. Throws Error for wrong checksums and sizes; `name` is
// the file name in its message.
std::vector<TarEntry> read_tar(std::string_view archive, const std::string& name);

}  // namespace tandem
