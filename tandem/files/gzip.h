// Decompresses gzip, within a limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

bool is_gzip(std::string_view bytes);  // by the magic bytes

// All members of a gzip stream, one after the other. More than `limit` bytes of output, a stream cut short
// and a damaged one are Errors; `name` stands in them.
std::string gunzip(std::string_view bytes, std::size_t limit, const std::string& name);

}  // namespace tandem
