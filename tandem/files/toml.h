// The subset of TOML that run configurations use: `key = value` lines with strings, integers, floating-point
// numbers, booleans, lists of these, and comments. Tables, dotted keys, dates and multi-line strings are
// refused with an Error that names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem {

using TomlScalar = std::variant<bool, std::int64_t, double, std::string>;
using TomlList = std::vector<TomlScalar>;
using TomlValue = std::variant<bool, std::int64_t, double, std::string, TomlList>;

struct TomlEntry {
  std::string key;
  TomlValue value;
  int line = 0;  // counted from 1
};

struct TomlTable {
  std::string name;  // "run.toml", for error messages
  std::vector<TomlEntry> entries;

  const TomlEntry* find(std::string_view key) const;  // nullptr if it is missing
  // "run.toml:3", the prefix of errors about the entry.
  std::string where(const TomlEntry& entry) const;
};

// Throws Error ("[config] run.toml:3: expected a value, got …") for invalid text and duplicate keys.
TomlTable parse_toml(std::string_view text, const std::string& name);

// Text from which parse_toml() restores the same entries bit for bit.
std::string to_toml(const TomlTable& table);

// The value as text for a command-line flag: strings without quotes, lists separated by commas.
std::string plain_text(const TomlValue& value);

}  // namespace tandem
