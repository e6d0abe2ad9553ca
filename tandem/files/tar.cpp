#include "tandem/files/tar.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

constexpr std::size_t block_size = 512;

// The field up to its first zero byte.
std::string_view field_text(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces; nothing for other formats (such as that of sizes of 8 GiB and more).
std::optional<std::uint64_t> field_number(std::string_view header, std::size_t at, std::size_t size) {
  std::string_view digits = field_text(header, at, size);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  return parse_number<std::uint64_t>(digits, 8);
}

// The sum of the header's bytes, with the checksum field counted as spaces.
std::uint64_t checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block_size; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

}  // namespace

std::vector<TarEntry> read_tar(std::string_view archive, const std::string& name) {
  std::vector<TarEntry> entries;
  std::string_view rest = archive;
  while (!rest.empty()) {
    check(rest.size() >= block_size, "[tar] {}: the archive is truncated", name);
    const std::string_view header = rest.substr(0, block_size);
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) break;
    check(field_number(header, 148, 8) == checksum(header), "[tar] {}: not a tar archive, or damaged", name);
    const std::string_view prefix = header.substr(257, 5) == "ustar" ? field_text(header, 345, 155) : "";
    std::string path(prefix);
    if (!path.empty()) path += '/';
    path += field_text(header, 0, 100);
    const auto size = field_number(header, 124, 12);
    check(size.has_value(), "[tar] {}: the size of '{}' is not a number", name, path);
    rest.remove_prefix(block_size);
    check(*size <= rest.size(), "[tar] {}: '{}' has {} bytes, but the archive has only {} left", name, path,
          *size, rest.size());
    const char type = header[156];
    if (type == '0' || type == '\0') entries.push_back({path, rest.substr(0, *size)});
    rest.remove_prefix(
        std::min<std::size_t>(rest.size(), (*size + block_size - 1) / block_size * block_size));
  }
  return entries;
}

}  // namespace tandem
