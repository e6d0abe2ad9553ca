// Writing a file so that it is never seen half-written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace tandem {

// Writes beside `path`, syncs, then renames over it; on an Error (which begins with `[op] path:`) what was
// there before is still there and nothing else is. A link is followed; a device or pipe is written to
// directly.
void write_file(std::string_view op, const std::filesystem::path& path, std::span<const uint8_t> bytes);

}  // namespace tandem
