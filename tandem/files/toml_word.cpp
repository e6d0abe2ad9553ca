#include "tandem/files/toml_word.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/toml_cursor.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem::detail {
namespace {

std::string shown(std::string_view word) {
  return shorten(one_line(word), 40);
}

bool is_digit_of(char c, int base) {
  if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c < '0' + base;
}

// Moves digits to `number` and drops the single underscores between them; false if there is no digit, or an
// underscore that is not between two of them.
bool take_digits(std::string_view& rest, std::string& number, int base = 10) {
  bool after_digit = false;
  while (!rest.empty()) {
    const bool digit = is_digit_of(rest[0], base);
    if (!digit && !(rest[0] == '_' && after_digit)) break;
    if (digit) number += rest[0];
    after_digit = digit;
    rest.remove_prefix(1);
  }
  return after_digit;
}

TomlValue to_integer(std::string_view word, const std::string& digits, int base) {
  const auto integer = parse_number<std::int64_t>(digits, base);
  check(integer.has_value(), "expected a whole number of at most 64 bits, got '{}'", shown(word));
  return *integer;
}

// Nothing if the word is not written as a number.
std::optional<TomlValue> parse_decimal(std::string_view word) {
  std::string_view rest = word;
  std::string number;
  if (rest.starts_with('-')) number = "-";
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "inf") return (number.empty() ? 1 : -1) * std::numeric_limits<double>::infinity();
  if (rest == "nan") return std::numeric_limits<double>::quiet_NaN();
  const bool leading_zero = rest.size() > 1 && rest[0] == '0' && (is_digit(rest[1]) || rest[1] == '_');
  if (leading_zero || !take_digits(rest, number)) return std::nullopt;
  if (rest.empty()) return to_integer(word, number, 10);
  if (rest.starts_with('.')) {
    number += '.';
    rest.remove_prefix(1);
    if (!take_digits(rest, number)) return std::nullopt;
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    number += 'e';
    rest.remove_prefix(1);
    if (rest.starts_with('-')) number += '-';
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    if (!take_digits(rest, number)) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  const auto real = parse_number<double>(number);
  check(real.has_value(), "expected a number that fits 64 bits, got '{}'", shown(word));
  return *real;
}

std::optional<TomlValue> parse_number_word(std::string_view word) {
  for (const auto& [prefix, base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}}) {
    if (!word.starts_with(prefix)) continue;
    std::string_view rest = word.substr(2);
    std::string digits;
    if (!take_digits(rest, digits, base) || !rest.empty()) return std::nullopt;
    return to_integer(word, digits, base);
  }
  return parse_decimal(word);
}

// Takes `size` digits with a value from `min` to `max`.
std::optional<int> take_number(std::string_view& rest, std::size_t size, int min, int max) {
  const std::string_view digits = rest.substr(0, size);
  if (digits.size() < size || !is_digit(digits[0])) return std::nullopt;
  const auto value = parse_number<int>(digits);
  if (!value || *value < min || *value > max) return std::nullopt;
  rest.remove_prefix(size);
  return value;
}

bool take_character(std::string_view& rest, std::string_view choices) {
  const bool found = !rest.empty() && choices.find(rest[0]) != std::string_view::npos;
  if (found) rest.remove_prefix(1);
  return found;
}

bool take_date(std::string_view& rest) {
  const auto year = take_number(rest, 4, 0, 9999);
  if (!year || !take_character(rest, "-")) return false;
  const auto month = take_number(rest, 2, 1, 12);
  if (!month || !take_character(rest, "-")) return false;
  const bool leap_year = *year % 4 == 0 && (*year % 100 != 0 || *year % 400 == 0);
  const bool short_month = *month == 4 || *month == 6 || *month == 9 || *month == 11;
  const int days = *month == 2 ? (leap_year ? 29 : 28) : short_month ? 30 : 31;
  return take_number(rest, 2, 1, days).has_value();
}

bool take_hours_and_minutes(std::string_view& rest) {
  return take_number(rest, 2, 0, 23) && take_character(rest, ":") && take_number(rest, 2, 0, 59);
}

// 60 is a leap second.
bool take_time(std::string_view& rest) {
  if (!take_hours_and_minutes(rest) || !take_character(rest, ":") || !take_number(rest, 2, 0, 60))
    return false;
  if (!take_character(rest, ".")) return true;
  std::size_t digits = 0;
  while (take_character(rest, "0123456789")) ++digits;
  return digits > 0;
}

bool take_offset(std::string_view& rest) {
  return take_character(rest, "Zz") || (take_character(rest, "+-") && take_hours_and_minutes(rest));
}

bool is_date(std::string_view word) {
  std::string_view rest = word;
  if (take_time(rest)) return rest.empty();
  rest = word;
  if (!take_date(rest)) return false;
  if (rest.empty()) return true;
  if (!take_character(rest, "Tt ") || !take_time(rest)) return false;
  return rest.empty() || (take_offset(rest) && rest.empty());
}

// Whether the word is meant as a date or a time: 12:… or 1979-…
bool resembles_date(std::string_view word) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  return digits > 0 && digits < word.size() && (word[digits] == ':' || word[digits] == '-');
}

}  // namespace

TomlValue parse_toml_word(std::string_view word) {
  if (word == "true") return true;
  if (word == "false") return false;
  if (const auto number = parse_number_word(word)) return *number;
  if (is_date(word)) {
    std::string text(word);
    for (char& c : text) c = c == ' ' || c == 't' ? 'T' : c == 'z' ? 'Z' : c;
    return TomlDate{text};
  }
  check(!resembles_date(word), "expected a date or a time such as 1979-05-27T07:32:00Z, got '{}'",
        shown(word));
  fail("expected a string in quotes, a number, true, false, a date, a list or a table, got '{}'",
       shown(word));
}

}  // namespace tandem::detail
