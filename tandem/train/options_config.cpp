// Options as tables: read from flags and configuration files, and written to run folders.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/files/read_file.h"
#include "tandem/train/options.h"

namespace tandem {
namespace {

// Throws the Error for an entry that is no option. Options are not grouped in tables: of a table the first
// key is named, with its path.
[[noreturn]] void refuse_unknown(const TomlTable& document, const TomlEntry& entry,
                                 const std::string& prefix = "") {
  const std::string path = prefix + toml_key(entry.key);
  const auto* const table = std::get_if<TomlTable>(&entry.value);
  if (table && !table->entries.empty()) refuse_unknown(document, table->entries.front(), path + ".");
  std::vector<std::string> known;
  for (const TrainField& field : train_fields()) known.emplace_back(field.key);
  std::string meant = did_you_mean(entry.key, known);
  if (std::ranges::find(known, entry.key) != known.end())
    meant = fmt::format("; did you mean '{}', outside of tables?", entry.key);
  if (meant.empty()) meant = fmt::format(", expected one of {}", fmt::join(known, ", "));
  fail("[config] {}: unknown key '{}'{}", document.where(entry), path, meant);
}

}  // namespace

TomlValue parse_field_value(const TrainField& field, const std::string& given) {
  const auto parsed = [&]<class T>(const std::string& part, T value) -> TomlValue {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && end == part.data() + part.size() ? TomlValue(value) : TomlValue(part);
  };
  switch (field.kind) {
    case TrainField::Kind::flag:
      if (given == "true" || given == "false") return given == "true";
      return parsed(given, std::int64_t{});
    case TrainField::Kind::integer:
      return parsed(given, std::int64_t{});
    case TrainField::Kind::real:
      return parsed(given, double{});
    case TrainField::Kind::text:
      return given;
    case TrainField::Kind::sizes:
      break;
  }
  TomlList sizes;
  for (std::size_t begin = 0; begin <= given.size();) {
    const std::size_t end = std::min(given.find(',', begin), given.size());
    const TomlValue size = parsed(given.substr(begin, end - begin), std::int64_t{});
    if (!std::holds_alternative<std::int64_t>(size)) return given;
    sizes.emplace_back(std::get<std::int64_t>(size));
    begin = end + 1;
  }
  return sizes;
}

void apply_table(TrainOptions& options, const TomlTable& table) {
  for (const TomlEntry& entry : table.entries) {
    const auto field = std::ranges::find(train_fields(), entry.key, &TrainField::key);
    if (field == train_fields().end()) refuse_unknown(table, entry);
    try {
      field->set(options, entry.value);
    } catch (const Error& error) {
      const TomlEntry* const with = table.find("with");
      const std::string plugins = with ? plain_text(with->value) : "";
      fail("[config] {}: {}: {}{}", table.where(entry), entry.key, error.what(),
           plugins.empty() ? "" : "; it was used with the plugin " + plugins);
    }
  }
}

TomlTable to_table(const TrainOptions& options) {
  TomlTable table;
  for (const TrainField& field : train_fields())
    table.entries.push_back({field.key, field.get(options), static_cast<int>(table.entries.size()) + 1});
  return table;
}

TomlTable to_table(const FitOptions& options) {
  TrainOptions all;
  static_cast<FitOptions&>(all) = options;
  TomlTable table;
  table.entries.push_back({"model", options.model_name, 1});
  for (const TrainField& field : train_fields())
    if (field.of_fit)
      table.entries.push_back({field.key, field.get(all), static_cast<int>(table.entries.size()) + 1});
  return table;
}

TrainOptions read_config(const std::filesystem::path& path, TrainOptions base) {
  apply_table(base, parse_toml(read_file("config", path, 1 << 20), path.string()));
  return base;
}

std::vector<std::string> differing_keys(const TomlTable& now, const TomlTable& before) {
  const TomlTable defaults = to_table(TrainOptions());
  std::vector<std::string> keys;
  for (const TomlEntry& entry : now.entries) {
    const TomlEntry* const known = before.find(entry.key);
    const TomlEntry* const other = known ? known : defaults.find(entry.key);
    if (other == nullptr || other->value != entry.value)
      keys.push_back(fmt::format("{} ({}, was {})", entry.key, plain_text(entry.value),
                                 other ? plain_text(other->value) : "not set"));
  }
  return keys;
}

std::vector<std::string> differing_keys(const TrainOptions& now, const TrainOptions& before) {
  return differing_keys(to_table(now), to_table(before));
}

}  // namespace tandem
