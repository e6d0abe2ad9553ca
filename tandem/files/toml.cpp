#include "tandem/files/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

bool is_bare(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : rest_(text) { table_.name = name; }

  TomlTable parse() {
    while (true) {
      skip_space(true);
      if (rest_.empty()) return std::move(table_);
      require(rest_[0] != '[', "expected key = value, got the table {}, which is not supported",
              first_word());
      const int line = line_;
      std::string key = take_key();
      require(table_.find(key) == nullptr, "'{}' is given twice", key);
      skip_space(false);
      require(rest_.starts_with('='), "expected = after '{}', got {}", key, first_word());
      rest_.remove_prefix(1);
      skip_space(false);
      TomlValue value = take_value();
      skip_space(false);
      require(rest_.empty() || rest_[0] == '\n',
              "expected the end of the line after the value of '{}', got {}", key, first_word());
      table_.entries.push_back({std::move(key), std::move(value), line});
    }
  }

 private:
  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (!condition)
      fail("[config] {}:{}: {}", table_.name, line_, fmt::format(text, std::forward<Args>(args)...));
  }

  // The next word, for error messages.
  std::string first_word() const {
    if (rest_.empty() || rest_[0] == '\n' || rest_[0] == '\r') return "the end of the line";
    return fmt::format("'{}'", rest_.substr(0, std::min<std::size_t>(rest_.find_first_of(" \t\r\n"), 40)));
  }

  // Skips spaces and a comment; with `lines` also line ends.
  void skip_space(bool lines) {
    while (!rest_.empty()) {
      if (rest_[0] == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_[0] == ' ' || rest_[0] == '\t' || rest_.starts_with("\r\n")) {
        rest_.remove_prefix(1);
      } else if (lines && rest_[0] == '\n') {
        rest_.remove_prefix(1);
        ++line_;
      } else {
        return;
      }
    }
  }

  std::string take_key() {
    if (rest_[0] == '"' || rest_[0] == '\'') return take_string();
    const auto end = std::ranges::find_if_not(rest_, is_bare);
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    require(size > 0, "expected a key, got {}", first_word());
    std::string key(rest_.substr(0, size));
    rest_.remove_prefix(size);
    require(!rest_.starts_with('.'), "dotted keys such as '{}{}' are not supported", key,
            rest_.substr(0, rest_.find_first_of(" \t\r\n=")));
    return key;
  }

  TomlValue take_value() {
    if (rest_.starts_with('[')) return take_list();
    return std::visit([](auto scalar) { return TomlValue(std::move(scalar)); }, take_scalar());
  }

  TomlList take_list() {
    TomlList list;
    rest_.remove_prefix(1);
    while (true) {
      skip_space(true);
      require(!rest_.empty(), "expected ] at the end of the list");
      if (rest_[0] == ']') break;
      require(rest_[0] != '[', "lists inside lists are not supported");
      list.push_back(take_scalar());
      skip_space(true);
      if (rest_.starts_with(',')) {
        rest_.remove_prefix(1);
      } else {
        require(rest_.starts_with(']'), "expected , or ] in the list, got {}", first_word());
      }
    }
    rest_.remove_prefix(1);
    return list;
  }

  TomlScalar take_scalar() {
    require(!rest_.starts_with('{'), "inline tables are not supported");
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return take_string();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t\r\n,]#"));
    require(!word.empty(), "expected a value, got {}", first_word());
    rest_.remove_prefix(word.size());
    if (word == "true") return true;
    if (word == "false") return false;
    return to_number(word);
  }

  TomlScalar to_number(std::string_view word) const {
    const auto is_digit = [&](std::size_t i) {
      return i < word.size() && std::isxdigit(static_cast<unsigned char>(word[i])) != 0;
    };
    std::string digits;  // without a leading plus and underscores
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool plus = i == 0 && word[i] == '+' && !word.starts_with("+-");
      const bool underscore = word[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1);
      if (!plus && !underscore) digits += word[i];
    }
    const bool negative = digits.starts_with('-');
    const std::string_view magnitude = std::string_view(digits).substr(negative ? 1 : 0);
    for (const auto& [prefix, base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}})
      if (word.starts_with(prefix) && digits.size() > 2 && digits[2] != '-')
        if (const auto integer = parse_number<std::int64_t>(std::string_view(digits).substr(2), base))
          return *integer;
    const auto is_decimal = [&](std::size_t i) {
      return i < magnitude.size() && magnitude[i] >= '0' && magnitude[i] <= '9';
    };
    const bool leading_zero = magnitude.starts_with('0') && is_decimal(1);
    if (!leading_zero)
      if (const auto integer = parse_number<std::int64_t>(digits)) return *integer;
    if (magnitude == "inf") return (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
    if (magnitude == "nan") return std::numeric_limits<double>::quiet_NaN();
    const auto number = parse_number<double>(digits);
    const std::size_t point = magnitude.find('.');
    const bool valid_format = magnitude.find_first_of(".eE") != std::string::npos && is_decimal(0) &&
                              (point == std::string::npos || is_decimal(point + 1));
    require(number.has_value() && valid_format && !leading_zero,
            "expected a string in quotes, a number, true, false or a list, got '{}'", word.substr(0, 40));
    return *number;
  }

  std::string take_string() {
    const char quote = rest_[0];
    require(!rest_.starts_with(std::string(3, quote)), "multi-line strings are not supported");
    rest_.remove_prefix(1);
    std::string text;
    while (true) {
      require(!rest_.empty() && rest_[0] != '\n', "expected {} at the end of the string", quote);
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == quote) return text;
      if (c == '\\' && quote == '"') {
        take_escape(text);
      } else {
        text += c;
      }
    }
  }

  void take_escape(std::string& text) {
    constexpr std::string_view letters = "btnfr\"\\", meanings = "\b\t\n\f\r\"\\";
    const char letter = rest_.empty() ? '\n' : rest_[0];
    if (const std::size_t at = letters.find(letter); at != std::string_view::npos) {
      text += meanings[at];
      rest_.remove_prefix(1);
      return;
    }
    const std::size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    require(digits > 0 && rest_.size() > digits, "unknown escape \\{} in a string",
            letter == '\n' ? std::string("at its end") : std::string(1, letter));
    const auto code = parse_number<std::uint32_t>(rest_.substr(1, digits), 16);
    require(code.has_value() && *code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF),
            "expected {} hexadecimal digits of a character after \\{}", digits, letter);
    append_utf8(text, char32_t{*code});
    rest_.remove_prefix(1 + digits);
  }

  std::string_view rest_;
  int line_ = 1;
  TomlTable table_;
};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

// `string_text` formats strings.
template <class F>
std::string text_of(const TomlScalar& scalar, F&& string_text) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>)
          return string_text(value);
        else if constexpr (std::is_same_v<T, double>)
          return number_text(value);
        else
          return fmt::format("{}", value);
      },
      scalar);
}

template <class F>
std::string text_of(const TomlValue& value, const char* separator, F&& string_text) {
  if (const auto* list = std::get_if<TomlList>(&value)) {
    std::string text;
    for (const TomlScalar& scalar : *list) {
      if (&scalar != list->data()) text += separator;
      text += text_of(scalar, string_text);
    }
    return text;
  }
  return std::visit(
      [&](const auto& scalar) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(scalar)>, TomlList>)
          return {};
        else
          return text_of(TomlScalar(scalar), string_text);
      },
      value);
}

}  // namespace

const TomlEntry* TomlTable::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

std::string TomlTable::where(const TomlEntry& entry) const {
  return fmt::format("{}:{}", name, entry.line);
}

TomlTable parse_toml(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

std::string to_toml(const TomlTable& table) {
  std::string text;
  for (const TomlEntry& entry : table.entries) {
    const bool bare = !entry.key.empty() && std::ranges::all_of(entry.key, is_bare);
    const bool list = std::holds_alternative<TomlList>(entry.value);
    const std::string value = text_of(entry.value, ", ", quoted);
    text += fmt::format("{} = {}{}{}\n", bare ? entry.key : quoted(entry.key), list ? "[" : "", value,
                        list ? "]" : "");
  }
  return text;
}

std::string plain_text(const TomlValue& value) {
  return text_of(value, ",", [](const std::string& text) { return text; });
}

}  // namespace tandem
