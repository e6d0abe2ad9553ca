// Does not use wcwidth() and the like: they depend on the locale, and reports must not.
#include "tandem/text/utf8.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

constexpr char32_t replacement = 0xFFFD;

int code_point_width(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  constexpr std::array<Range, 6> none{{{0x300, 0x36F},
                                       {0x200B, 0x200F},
                                       {0x20D0, 0x20FF},
                                       {0xFE00, 0xFE0F},
                                       {0xFE20, 0xFE2F},
                                       {0xFEFF, 0xFEFF}}};
  constexpr std::array<Range, 7> wide{{{0x1100, 0x115F},
                                       {0x2E80, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0x1F300, 0x3FFFD}}};
  const auto holds = [c](const Range& range) { return c >= range.first && c <= range.last; };
  if (std::any_of(none.begin(), none.end(), holds)) return 0;
  return std::any_of(wide.begin(), wide.end(), holds) ? 2 : 1;
}

bool is_control(char32_t c) {
  // 0x2028 and 0x2029 end lines; 0x202A to 0x202E and 0x2066 to 0x2069 change the text direction.
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// Of "\x1b[…m" at the beginning, else 0.
std::size_t color_code_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

char32_t take_code_point(std::string_view& rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80             ? 1
                             : (lead & 0xE0) == 0xC0 ? 2
                             : (lead & 0xF0) == 0xE0 ? 3
                             : (lead & 0xF8) == 0xF0 ? 4
                                                     : 0;
  if (length == 1) {
    rest.remove_prefix(1);
    return lead;
  }
  char32_t value = length == 0 ? 0 : lead & (0x7Fu >> length);
  bool valid = length != 0 && rest.size() >= length;
  for (std::size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xC0) == 0x80;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> min_value{0, 0, 0x80, 0x800, 0x10000};  // refuses overlong encodings
  valid = valid && value >= min_value[length] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
  rest.remove_prefix(valid ? length : 1);
  return valid ? value : replacement;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t before = text.size();
    if (take_code_point(text) == replacement && before - text.size() == 1) return false;
  }
  return true;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    append_utf8(line, is_control(c) ? U' ' : c);
  }
  return line;
}

std::string without_controls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t color = color_code_length(text);
    clean += text.substr(0, color);
    text.remove_prefix(color);
    if (color > 0) continue;
    const char32_t c = take_code_point(text);
    append_utf8(clean, is_control(c) && c != '\n' && c != '\t' ? U' ' : c);
  }
  return clean;
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += code_point_width(take_code_point(text));
  return width;
}

std::string shorten(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  std::string kept;
  int used = 1;  // the ellipsis
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    used += code_point_width(c);
    if (used > width) break;
    append_utf8(kept, c);
  }
  return width > 0 ? kept + "…" : kept;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  std::string line;
  const auto finish_line = [&] {
    if (!line.empty()) lines.push_back(std::move(line));
    line.clear();
  };
  const std::string clean = one_line(text);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string word = shorten(rest.substr(0, end), width);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.empty()) continue;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) finish_line();
    line += line.empty() ? word : " " + word;
  }
  finish_line();
  return lines;
}

}  // namespace tandem
