#include "tandem/files/toml_cursor.h"

#include <algorithm>
#include <cstdint>

#include "tandem/files/toml.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem::detail {

std::string key_text(const std::vector<std::string>& parts, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, parts.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ".", toml_key(parts[i]));
  return text;
}

std::string checked_toml_text(std::string_view text, const std::string& name) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::string result;
  result.reserve(text.size());
  int line = 1;
  while (!text.empty()) {
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    const std::string_view before = text;
    const char32_t character = take_code_point(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    check(character != 0xFFFD || bytes.size() > 1, "[config] {}:{}: expected UTF-8, got the byte 0x{:02X}",
          name, line, static_cast<unsigned char>(bytes[0]));
    check(character != '\r', "[config] {}:{}: expected a line feed after the carriage return", name, line);
    check((character >= 0x20 && character != 0x7F) || character == '\t' || character == '\n',
          "[config] {}:{}: expected text, got the control character U+{:04X}", name, line,
          static_cast<std::uint32_t>(character));
    line += character == '\n';
    result += bytes;
  }
  return result;
}

std::string TomlCursor::next_word() const {
  if (rest_.empty() || rest_[0] == '\n') return "the end of the line";
  const std::size_t size = std::max<std::size_t>(std::min(rest_.find_first_of(" \t\n"), rest_.size()), 1);
  return fmt::format("'{}'", shorten(one_line(rest_.substr(0, size)), 40));
}

char TomlCursor::take_character() {
  const char c = rest_[0];
  rest_.remove_prefix(1);
  line_ += c == '\n';
  return c;
}

bool TomlCursor::take(std::string_view text) {
  const bool found = rest_.starts_with(text);
  if (found) rest_.remove_prefix(text.size());
  return found;
}

void TomlCursor::skip_spaces() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
}

void TomlCursor::skip_lines() {
  while (true) {
    skip_spaces();
    if (next() == '#') rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    if (next() != '\n') return;
    take_character();
  }
}

void TomlCursor::take_line_end(std::string_view what) {
  skip_spaces();
  require_next(rest_.empty() || next() == '\n' || next() == '#', "expected the end of the line after {}",
               what);
}

std::string_view TomlCursor::take_word() {
  constexpr std::string_view ends = " \t\n,]}#";
  constexpr std::size_t date_size = 10;  // of 1979-05-27
  std::size_t size = std::min(rest_.find_first_of(ends), rest_.size());
  const bool date_and_time = size == date_size && rest_[4] == '-' && rest_.size() > date_size + 1 &&
                             rest_[date_size] == ' ' && is_digit(rest_[date_size + 1]);
  if (date_and_time) size = std::min(rest_.find_first_of(ends, date_size + 1), rest_.size());
  const std::string_view word = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return word;
}

std::string TomlCursor::take_string() {
  const char quote = next();
  return take(std::string(3, quote)) ? take_multi_line_string(quote) : take_one_line_string();
}

std::string TomlCursor::take_one_line_string() {
  const char quote = take_character();
  std::string text;
  while (true) {
    require(!rest_.empty() && next() != '\n', "expected {} at the end of the string", quote);
    const char c = take_character();
    if (c == quote) return text;
    if (c == '\\' && quote == '"')
      take_escape(text);
    else
      text += c;
  }
}

std::string TomlCursor::take_multi_line_string(char quote) {
  const std::string end(3, quote);
  const int first_line = line_;
  if (next() == '\n') take_character();
  std::string text;
  while (!rest_.starts_with(end)) {
    require(!rest_.empty(), "expected {} at the end of the string that begins in line {}", end, first_line);
    const char c = take_character();
    if (c != '\\' || quote != '"')
      text += c;
    else if (!take_line_continuation())
      take_escape(text);
  }
  // One or two quotes before the three belong to the string.
  for (int more = 0; more < 2 && rest_.size() > 3 && rest_[3] == quote; ++more) text += take_character();
  take(end);
  return text;
}

// A backslash at the end of a line removes everything up to the next character that is not blank.
bool TomlCursor::take_line_continuation() {
  const std::size_t blanks = std::min(rest_.find_first_not_of(" \t"), rest_.size());
  if (blanks == rest_.size() || rest_[blanks] != '\n') return false;
  while (next() == ' ' || next() == '\t' || next() == '\n') take_character();
  return true;
}

void TomlCursor::take_escape(std::string& text) {
  constexpr std::string_view letters = "btnfr\"\\", meanings = "\b\t\n\f\r\"\\";
  const char letter = next();
  const std::size_t size = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
    text += meanings[at];
    take_character();
    return;
  }
  require_next(size > 0, R"(expected one of b, t, n, f, r, ", \, u, U after \ in a string)");
  take_character();
  const std::string_view digits = rest_.substr(0, size);
  const bool valid_digits =
      digits.size() == size && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  const auto code = valid_digits ? parse_number<std::uint32_t>(digits, 16) : std::nullopt;
  require_next(code.has_value() && *code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF),
               "expected {} hexadecimal digits of a character after \\{}", size, letter);
  append_utf8(text, char32_t{*code});
  rest_.remove_prefix(size);
}

std::vector<std::string> TomlCursor::take_key() {
  std::vector<std::string> parts;
  do {
    skip_spaces();
    parts.push_back(take_key_part());
    skip_spaces();
  } while (take("."));
  return parts;
}

std::string TomlCursor::take_key_part() {
  require_next(!rest_.starts_with("\"\"\"") && !rest_.starts_with("'''"),
               "expected a key in single quotes or none");
  if (next() == '"' || next() == '\'') return take_one_line_string();
  const auto end = std::ranges::find_if_not(rest_, is_bare_key_character);
  const auto size = static_cast<std::size_t>(end - rest_.begin());
  require_next(size > 0, "expected a key");
  std::string part(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return part;
}

}  // namespace tandem::detail
