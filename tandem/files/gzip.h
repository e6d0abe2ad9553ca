// Gzip decompression with a limit on the output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

// By the magic bytes.
bool is_gzip(std::string_view bytes);

// Decompresses all members of a gzip stream. Throws Error for more than `max_bytes` bytes of output and for a
// truncated or damaged stream; `name` is the file name in its message.
std::string gunzip(std::string_view bytes, std::size_t max_bytes, const std::string& name);

}  // namespace tandem
