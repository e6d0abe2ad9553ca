// TOML 1.0: a document as a tree of tables, a parser for every valid document, and a writer. Run
// configurations use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem {

struct TomlEntry;
struct TomlValue;
using TomlList = std::vector<TomlValue>;

// A date, a time, or both, with or without an offset from UTC: "1979-05-27", "07:32:00.5",
// "1979-05-27T07:32:00", "1979-05-27T07:32:00Z". Checked by the parser; T and Z are capitals.
struct TomlDate {
  std::string text;

  bool operator==(const TomlDate&) const = default;
};

struct TomlTable {
  std::string name;                // of a whole document: "run.toml", for error messages
  std::vector<TomlEntry> entries;  // in the order in which the document names them

  const TomlEntry* find(std::string_view key) const;  // nullptr if it is missing
  // "run.toml:3", the prefix of errors about the entry.
  std::string where(const TomlEntry& entry) const;

  bool operator==(const TomlTable& other) const;  // the entries
};

struct TomlValue : std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlList, TomlTable> {
  using variant::variant;
};

struct TomlEntry {
  std::string key;
  TomlValue value;
  int line = 0;  // of the key, counted from 1

  bool operator==(const TomlEntry& other) const { return key == other.key && value == other.value; }
};

// Throws Error ("[config] run.toml:3: expected a value, got …") for text that is not valid TOML 1.0, a number
// that does not fit 64 bits, and more than 100 levels of lists and tables. Line ends in strings become "\n".
TomlTable parse_toml(std::string_view text, const std::string& name);

// Text from which parse_toml() restores the same entries bit for bit. Tables inside are written inline.
std::string to_toml(const TomlTable& table);

// The value as text for a command-line flag: strings without quotes, lists separated by commas.
std::string plain_text(const TomlValue& value);

// A key as TOML writes it: in quotes unless it consists of letters, digits, _ and -.
std::string toml_key(std::string_view key);

}  // namespace tandem
