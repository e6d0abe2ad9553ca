#include "tandem/image/png_orientation.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "tandem/image/exif.h"

namespace tandem {
namespace {

using Bytes = std::span<const uint8_t>;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t big_endian(Bytes bytes, size_t at) {
  return uint32_t(bytes[at]) << 24 | uint32_t(bytes[at + 1]) << 16 | uint32_t(bytes[at + 2]) << 8 |
         bytes[at + 3];
}

// Takes the text up to the next zero byte, which is removed too; nothing without one.
std::optional<std::string_view> take_text(std::string_view& rest) {
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return text;
}

// Empty for damaged data and for more than any metadata needs.
std::string inflated(std::string_view packed) {
  constexpr uLongf max_bytes = 1 << 20;
  std::string text(max_bytes, '\0');
  uLongf size = max_bytes;
  const int status = uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                reinterpret_cast<const Bytef*>(packed.data()), uLong(packed.size()));
  text.resize(status == Z_OK ? size : 0);
  return text;
}

// A profile as ImageMagick writes it: its name, its size and its bytes in hexadecimal digits.
std::optional<int> profile_orientation(std::string_view text) {
  for (int line = 0; line < 3; ++line) {  // an empty one, "exif", and the size
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  std::string digits(text);
  std::erase(digits, '\n');
  std::vector<uint8_t> block(digits.size() / 2);
  for (size_t i = 0; i < block.size(); ++i) {
    const char* const end = digits.data() + 2 * i + 2;
    if (std::from_chars(end - 2, end, block[i], 16).ptr != end) return std::nullopt;
  }
  return find_exif_orientation(block);
}

bool is_exif_profile(std::string_view keyword) {
  return keyword == "Raw profile type exif" || keyword == "Raw profile type APP1";
}

struct Found {
  std::optional<int> exif, profile, xmp;

  void read(std::string_view name, Bytes data) {
    std::string_view rest = text_of(data);
    if (name == "eXIf") {
      if (!exif) exif = find_exif_orientation(data);
      return;
    }
    const auto keyword = take_text(rest);
    if (!keyword) return;
    if (name == "iTXt") {
      if (*keyword == "XML:com.adobe.xmp" && !xmp) xmp = read_xmp(rest);
    } else if (is_exif_profile(*keyword) && !profile) {
      if (name == "zTXt" && !rest.empty()) profile = profile_orientation(inflated(rest.substr(1)));
      if (name == "tEXt") profile = profile_orientation(rest);
    }
  }

  // After the keyword: whether it is compressed, how, language, translated keyword, text.
  static std::optional<int> read_xmp(std::string_view rest) {
    if (rest.size() < 2) return std::nullopt;
    const bool is_packed = rest[0] == 1;
    rest.remove_prefix(2);
    if (!take_text(rest) || !take_text(rest)) return std::nullopt;
    return find_xmp_orientation(is_packed ? inflated(rest) : rest);
  }
};

}  // namespace

int png_orientation(Bytes bytes) {
  constexpr size_t signature = 8, frame = 12;  // a chunk: length, name, data, checksum
  Found found;
  for (size_t at = signature; at + frame <= bytes.size();) {
    const size_t length = big_endian(bytes, at);
    if (length > bytes.size() - at - frame) break;
    const std::string_view name = text_of(bytes.subspan(at + 4, 4));
    const bool may_state = name == "eXIf" || name == "iTXt" || name == "zTXt" || name == "tEXt";
    if (may_state && crc32(0, bytes.data() + at + 4, uInt(length + 4)) == big_endian(bytes, at + 8 + length))
      found.read(name, bytes.subspan(at + 8, length));
    at += frame + length;
  }
  return found.exif.value_or(found.profile.value_or(found.xmp.value_or(1)));
}

}  // namespace tandem
