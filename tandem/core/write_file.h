// Writes a whole file or none: beside its place, to the disk, then renamed into it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace tandem {

// Replaces `path` by a file of those bytes, or throws "[op] cannot write report.html: Permission denied" and
// leaves what was there and nothing else. An existing file keeps its mode, a link keeps pointing where it
// did; a device or pipe (/dev/stdout) is written directly.
void write_file(const char* op, const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const char* op, const std::filesystem::path& path, std::string_view text);

// Throws the Error that write_file() would throw for what can be told beforehand: to be called before
// minutes of work whose result could not be kept.
void check_writable(const char* op, const std::filesystem::path& path);

}  // namespace tandem
