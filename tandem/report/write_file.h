// Writes a whole file or none: beside its place, to the disk, then renamed into it.
#pragma once

#include <filesystem>
#include <string_view>

namespace tandem {

// Replaces `path` by a file of that text, or throws "[write] cannot write report.html: Permission denied" and
// leaves what was there. A link keeps pointing where it did; a device or pipe (/dev/stdout) is written
// directly.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tandem
