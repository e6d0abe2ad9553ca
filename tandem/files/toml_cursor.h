// A position in a TOML document: its line, errors that name it, and what a document is made of below values:
// blanks, words, strings and keys.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/check.h"

namespace tandem::detail {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline bool is_bare_key_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || is_digit(c) || c == '_' || c == '-';
}

// "a.b" for the first `count` parts of a dotted key.
std::string key_text(const std::vector<std::string>& parts, std::size_t count = std::string::npos);

// The text without a byte order mark and with "\n" as line ends. Throws Error for bytes that are not UTF-8
// and for control characters, which are invalid everywhere in a document.
std::string checked_toml_text(std::string_view text, const std::string& name);

class TomlCursor {
 public:
  // `text` is of checked_toml_text(). Both arguments must outlive the cursor.
  TomlCursor(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  int line() const { return line_; }
  bool at_end() const { return rest_.empty(); }
  char next() const { return rest_.empty() ? '\0' : rest_[0]; }
  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (!condition) fail("[config] {}:{}: {}", name_, line_, fmt::format(text, std::forward<Args>(args)...));
  }

  // The same, with ", got " and the next word at the end.
  template <class... Args>
  void require_next(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (!condition) require(false, "{}, got {}", fmt::format(text, std::forward<Args>(args)...), next_word());
  }

  // Takes the text if it comes next.
  bool take(std::string_view text);
  void skip_spaces();  // on this line; no comment
  void skip_lines();   // spaces, comments and line ends
  // Takes spaces and a comment; after `what` the line must end.
  void take_line_end(std::string_view what);

  // A number, a date or another word. A date and a time that a space separates are one word.
  std::string_view take_word();
  // A string in quotes, on one line or on several.
  std::string take_string();
  // The parts of a key: a . "b c" gives two.
  std::vector<std::string> take_key();

 private:
  std::string next_word() const;
  std::string take_one_line_string();
  std::string take_multi_line_string(char quote);
  void take_escape(std::string& text);
  bool take_line_continuation();
  std::string take_key_part();
  // Removes the next character, which must exist.
  char take_character();

  std::string_view rest_;
  const std::string& name_;
  int line_ = 1;
};

}  // namespace tandem::detail
