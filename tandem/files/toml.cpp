#include "tandem/files/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tandem/files/toml_cursor.h"

namespace tandem {
namespace {

std::string quoted_text(std::string_view text) {
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

// The value as TOML, on one line.
std::string inline_text(const TomlValue& value);

std::string inline_text(const TomlList& list) {
  std::string text;
  for (const TomlValue& value : list)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", inline_text(value));
  return "[" + text + "]";
}

std::string inline_text(const TomlTable& table) {
  std::string text;
  for (const TomlEntry& entry : table.entries)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", toml_key(entry.key), inline_text(entry.value));
  return "{" + text + "}";
}

std::string inline_text(const TomlValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, TomlList> || std::is_same_v<T, TomlTable>)
          return inline_text(held);
        else if constexpr (std::is_same_v<T, std::string>)
          return quoted_text(held);
        else if constexpr (std::is_same_v<T, TomlDate>)
          return held.text;
        else if constexpr (std::is_same_v<T, double>)
          return number_text(held);
        else
          return fmt::format("{}", held);
      },
      value);
}

// A string as it is, anything else as TOML.
std::string unquoted_text(const TomlValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text ? *text : inline_text(value);
}

}  // namespace

const TomlEntry* TomlTable::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

std::string TomlTable::where(const TomlEntry& entry) const {
  return fmt::format("{}:{}", name, entry.line);
}

bool TomlTable::operator==(const TomlTable& other) const {
  return entries == other.entries;
}

std::string to_toml(const TomlTable& table) {
  std::string text;
  for (const TomlEntry& entry : table.entries)
    text += fmt::format("{} = {}\n", toml_key(entry.key), inline_text(entry.value));
  return text;
}

std::string plain_text(const TomlValue& value) {
  const auto* const list = std::get_if<TomlList>(&value);
  if (list == nullptr) return unquoted_text(value);
  std::string text;
  for (const TomlValue& part : *list)
    text += fmt::format("{}{}", &part == list->data() ? "" : ",", unquoted_text(part));
  return text;
}

std::string toml_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, detail::is_bare_key_character) ? std::string(key)
                                                                                 : quoted_text(key);
}

}  // namespace tandem
