#include "tandem/files/pickle_cursor.h"

#include <bit>

#include "tandem/core/check.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t max_pickle_bytes = 64 << 20;

}  // namespace

PickleCursor::PickleCursor(std::string_view bytes, const std::string& name)
    : bytes_(bytes.substr(0, max_pickle_bytes)), name_(name) {}

void PickleCursor::refuse() const {
  fail("[pickle] {}: not a pickle, or damaged: unexpected opcode 0x{:02x} at byte {}", name_,
       static_cast<unsigned char>(bytes_[opcode_position_]), opcode_position_);
}

Opcode PickleCursor::read_opcode() {
  opcode_position_ = position_;
  return static_cast<Opcode>(static_cast<unsigned char>(read_bytes(1)[0]));
}

std::string_view PickleCursor::read_bytes(std::uint64_t size) {
  check(size <= bytes_.size() - position_, "[pickle] {}: the pickle is truncated, or longer than {} bytes",
        name_, max_pickle_bytes);
  const std::string_view bytes = bytes_.substr(position_, size);
  position_ += size;
  return bytes;
}

std::string_view PickleCursor::read_line() {
  const std::size_t end = bytes_.find('\n', position_);
  check(end != std::string_view::npos, "[pickle] {}: the pickle is truncated", name_);
  const std::string_view text = read_bytes(end - position_);
  read_bytes(1);
  return text;
}

std::uint64_t PickleCursor::read_uint(std::size_t size) {
  const std::string_view raw = read_bytes(size);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
  return value;
}

double PickleCursor::read_big_endian_double() {
  std::uint64_t bits = 0;
  for (const char c : read_bytes(8)) bits = bits << 8 | static_cast<unsigned char>(c);
  return std::bit_cast<double>(bits);
}

std::uint32_t PickleCursor::parse_hex(std::string_view text, std::size_t begin, std::size_t digits) const {
  require(begin + digits <= text.size());
  const auto code = parse_number<std::uint32_t>(text.substr(begin, digits), 16);
  require(code.has_value() && *code <= 0x10FFFF);
  return *code;
}

std::string PickleCursor::unquote(std::string_view text) const {
  require(text.size() >= 2 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"'));
  text = text.substr(1, text.size() - 2);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    ++i;
    require(i < text.size());
    if (text[i] == 'x') {
      result += static_cast<char>(parse_hex(text, i + 1, 2));
      i += 2;
    } else {
      constexpr std::string_view letters = "nrt\\'\"", meanings = "\n\r\t\\'\"";
      const std::size_t known = letters.find(text[i]);
      require(known != std::string_view::npos);
      result += meanings[known];
    }
  }
  return result;
}

std::string PickleCursor::unescape_unicode(std::string_view text) const {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char kind = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const std::size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0) {
      append_utf8(result, static_cast<unsigned char>(text[i]));  // Latin-1
    } else {
      append_utf8(result, parse_hex(text, i + 2, digits));
      i += 1 + digits;
    }
  }
  return result;
}

}  // namespace tandem
