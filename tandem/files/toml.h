// The part of TOML a run's configuration needs: `key = value` lines with strings, whole numbers, numbers,
// booleans, lists of those, and comments. Sections, dotted keys, dates and strings over several lines are
// refused by name.
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
  int line = 0;  // where it stands in the text, from 1
};

struct TomlTable {
  std::string name;  // "run.toml", for errors
  std::vector<TomlEntry> entries;

  const TomlEntry* find(std::string_view key) const;  // nullptr when it is not there
  // "run.toml:3", before an error about that entry.
  std::string where(const TomlEntry& entry) const;
};

// Errors say where: "[config] run.toml:3: expected a value, got …". A key may be given once.
TomlTable parse_toml(std::string_view text, const std::string& name);

// Text that parse_toml() reads back to the same entries, bit for bit.
std::string to_toml(const TomlTable& table);

// A value as it would be typed for a flag: strings without quotes, lists with commas between.
std::string plain_text(const TomlValue& value);

}  // namespace tandem
