#include "tandem/files/inspect_packed.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/files/packed_path.h"
#include "tandem/text/format_number.h"
#include "tandem/text/table.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string counted_images(std::int64_t count) {
  return fmt::format("{} image{}", format_count(count), count == 1 ? "" : "s");
}

}  // namespace

bool is_packed_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  char begin[16] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(begin, sizeof begin);
  return is_packed_set({begin, static_cast<std::size_t>(file.gcount())});
}

PackedFacts inspect_packed(const std::filesystem::path& path) {
  PackedFacts facts{.file = one_line(path.string())};
  const std::optional<PackedPath> found = find_packed(path);
  check(found && found->inside.empty(), "[inspect] {}: expected a packed set with a name that ends in {}",
        facts.file, packed_set_ending);
  const PackedIndex& index = found->index();
  facts.bytes = bytes_in_file(path).value_or(0);
  facts.images = index.count();
  facts.options = index.options();
  std::vector<char> intact(static_cast<std::size_t>(index.count()));
  parallel_tasks(index.count(), 16, [&] {
    return [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) intact[static_cast<std::size_t>(i)] = index.is_intact(i);
    };
  });
  for (std::int64_t i = 0; i < index.count(); ++i) {
    const std::string_view name = index.name(i), folder = name.substr(0, name.rfind('/') + 1);
    if (facts.folders.empty() || facts.folders.back().name != folder)
      facts.folders.push_back({.name = std::string(folder)});
    ++facts.folders.back().images;
    facts.folders.back().bytes += index.bytes(i).size();
    if (!intact[static_cast<std::size_t>(i)]) facts.damaged.emplace_back(name);
  }
  if (!facts.damaged.empty())
    facts.problem =
        fmt::format("[inspect] {}: expected images with their checksums, got {} without, the first {}",
                    facts.file, format_count(std::ssize(facts.damaged)), one_line(facts.damaged[0]));
  return facts;
}

std::string to_text(const PackedFacts& facts, const TextStyle& style) {
  std::string text = fmt::format("{}: packed set, {}, {}, {}\n\n", facts.file, megabytes(facts.bytes),
                                 counted_images(facts.images), one_line(facts.options));
  Table table{.columns = {{"folder"}, {"images", Align::right}, {"MB", Align::right}}};
  for (const PackedFacts::Folder& folder : facts.folders)
    table.rows.push_back({.cells = {{folder.name.empty() ? "." : one_line(folder.name)},
                                    {format_count(folder.images)},
                                    {fmt::format("{:.1f}", static_cast<double>(folder.bytes) / 1e6)}}});
  text += format_table(table, style);
  for (const std::string& name : facts.damaged) text += fmt::format("DAMAGED: {}\n", one_line(name));
  if (facts.damaged.empty()) text += "All checksums are right.\n";
  return text;
}

std::string to_json_text(const PackedFacts& facts) {
  using Json = nlohmann::ordered_json;
  const Json options = Json::parse(facts.options, nullptr, /*allow_exceptions=*/false);
  Json json = {{"file", facts.file},
               {"format", "packed set"},
               {"bytes", facts.bytes},
               {"images", facts.images},
               {"options", options.is_discarded() ? Json::object() : options},
               {"folders", Json::array()},
               {"damaged", facts.damaged}};
  for (const PackedFacts::Folder& folder : facts.folders)
    json["folders"].push_back({{"name", folder.name}, {"images", folder.images}, {"bytes", folder.bytes}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
