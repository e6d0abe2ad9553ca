#include "tandem/files/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/files/pickle_scan.h"
#include "tandem/files/read_file.h"
#include "tandem/files/weights.h"
#include "tandem/files/zip.h"
#include "tandem/text/format_number.h"
#include "tandem/text/table.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

TensorFacts facts_of(const NamedTensor& named) {
  TensorFacts facts{.name = named.name, .dtype = named.tensor.dtype(), .shape = named.tensor.shape()};
  double sum = 0, min = std::numeric_limits<double>::infinity(), max = -min;
  on_dtype(AllTypes{}, facts.dtype, "inspect", [&]<class T>() {
    const T* values = named.tensor.data<T>();
    for (std::int64_t i = 0; i < facts.shape.numel(); ++i) {
      const auto value = static_cast<double>(static_cast<ComputeType<T>>(values[i]));
      if (!std::isfinite(value)) {
        ++facts.not_finite;
        continue;
      }
      sum += value;
      min = std::min(min, value);
      max = std::max(max, value);
    }
  });
  const std::int64_t finite = facts.shape.numel() - facts.not_finite;
  if (finite == 0) return facts;
  facts.min = min;
  facts.max = max;
  facts.mean = sum / static_cast<double>(finite);
  return facts;
}

// "122 tensors"
std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", format_count(static_cast<std::int64_t>(count)), what, count == 1 ? "" : "s");
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", format_count(static_cast<std::int64_t>(bytes)));
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

bool has_statistics(const TensorFacts& tensor) {
  return tensor.shape.numel() > tensor.not_finite;
}

// For a table: a file may have a text of any length.
std::string shown(std::string_view text) {
  constexpr std::size_t max_bytes = 4000;
  return text.size() <= max_bytes ? one_line(text) : one_line(text.substr(0, max_bytes)) + "…";
}

std::string tensor_table(const WeightFacts& facts, const TextStyle& style) {
  const bool all_finite = std::ranges::all_of(facts.tensors, [](auto& t) { return t.not_finite == 0; });
  Table table{.columns = {{"tensor"},
                          {"dtype"},
                          {"shape"},
                          {"values", Align::right},
                          {"min", Align::right},
                          {"max", Align::right},
                          {"mean", Align::right}}};
  if (!all_finite) table.columns.push_back({"not finite", Align::right});
  for (const TensorFacts& tensor : facts.tensors) {
    TableRow row{.cells = {{shown(tensor.name)},
                           {std::string(name_of(tensor.dtype)), Tone::faint},
                           {tensor.shape.to_string()},
                           {format_count(tensor.shape.numel())}}};
    for (const double value : {tensor.min, tensor.max, tensor.mean})
      row.cells.push_back({has_statistics(tensor) ? fmt::format("{:.4g}", value) : "-"});
    if (!all_finite)
      row.cells.push_back({tensor.not_finite == 0 ? "" : format_count(tensor.not_finite), Tone::bad});
    table.rows.push_back(std::move(row));
  }
  return format_table(table, style);
}

std::string name_table(const WeightFacts& facts, const TextStyle& style) {
  Table table{.columns = {{"name in the pickle"}, {"Python would"}, {"Tandem"}}};
  for (const PthName& name : facts.names) {
    const bool refused = !name.understood;
    table.rows.push_back(
        {.cells = {{one_line(name.name), refused ? Tone::bad : Tone::plain},
                   {name.called ? "call it" : "import it"},
                   {refused ? "refuses it" : "understands it", refused ? Tone::bad : Tone::faint}}});
  }
  return format_table(table, style);
}

std::string shortened_list(std::vector<std::string> names) {
  constexpr std::size_t max_names = 5;
  if (names.size() > max_names) {
    names.resize(max_names);
    names.emplace_back("others");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string metadata_table(const WeightFacts& facts, const TextStyle& style) {
  Table table{.columns = {{"metadata"}, {"value"}}};
  for (const auto& [key, value] : facts.metadata)
    table.rows.push_back({.cells = {{shown(key)}, {shown(value)}}});
  return format_table(table, style);
}

}  // namespace

std::vector<std::string> WeightFacts::suspicious() const {
  std::vector<std::string> all;
  for (const PthName& name : names)
    if (!name.understood) all.push_back(one_line(name.name));
  return all;
}

std::int64_t WeightFacts::parameters() const {
  const bool has_integers = metadata.contains("tandem.quantization");
  std::int64_t sum = 0;
  for (const TensorFacts& tensor : tensors)
    if (is_floating(tensor.dtype) || (has_integers && tensor.dtype == DType::u8)) sum += tensor.shape.numel();
  return sum;
}

WeightFacts inspect_weights(const std::filesystem::path& path) {
  const std::string bytes = read_file("inspect", path, max_weight_bytes);
  WeightFacts facts{.file = one_line(path.string()), .format = "safetensors", .bytes = bytes.size()};
  TensorFile file;
  const bool is_pickle = weight_format(bytes) == WeightFormat::pth;
  PickleScan scan = scan_pickles(bytes, path.string(), is_pickle);  // a file can be both
  facts.names = std::move(scan.names);
  if (!is_pickle) {
    file = parse_safetensors(bytes, path.string());
  } else {
    try {
      file = parse_pth(bytes, path.string());
      facts.format = file.metadata.extract("format").mapped();
      facts.problem = std::move(scan.problem);
    } catch (const Error& error) {
      if (facts.names.empty() && !is_zip(bytes) && !begins_like_pickle(bytes)) throw;
      facts.format = is_zip(bytes) ? "pickle in a zip archive" : "pickle";
      facts.problem = error.what();
    }
  }
  if (const auto suspicious = facts.suspicious(); facts.problem.empty() && !suspicious.empty())
    facts.problem = fmt::format("[inspect] {}: expected weights only, got a file that also names {}",
                                facts.file, shortened_list(suspicious));
  for (const NamedTensor& tensor : file.tensors) facts.tensors.push_back(facts_of(tensor));
  facts.metadata = std::move(file.metadata);
  return facts;
}

std::string to_text(const WeightFacts& facts, const TextStyle& style) {
  std::string text = fmt::format("{}: {}, {}", facts.file, facts.format, size_text(facts.bytes));
  if (facts.problem.empty())
    text += fmt::format(", {}, {}", counted(facts.tensors.size(), "tensor"),
                        counted(static_cast<std::size_t>(facts.parameters()), "parameter"));
  text += "\n";
  if (!facts.tensors.empty()) text += "\n" + tensor_table(facts, style);
  if (!facts.metadata.empty()) text += "\n" + metadata_table(facts, style);
  if (!facts.names.empty()) text += "\n" + name_table(facts, style);
  if (const auto suspicious = facts.suspicious(); !suspicious.empty())
    text +=
        fmt::format("SUSPICIOUS: loading this file in Python could run {}.\n", shortened_list(suspicious));
  if (!facts.names.empty()) text += "Nothing was imported or called to read this file.\n";
  return text;
}

std::string to_json_text(const WeightFacts& facts) {
  using Json = nlohmann::ordered_json;
  Json json = {{"file", facts.file},       {"format", facts.format},
               {"bytes", facts.bytes},     {"parameters", facts.parameters()},
               {"tensors", Json::array()}, {"metadata", Json::object()}};
  for (const TensorFacts& tensor : facts.tensors) {
    Json one = {{"name", tensor.name},
                {"dtype", name_of(tensor.dtype)},
                {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())}};
    if (has_statistics(tensor)) one.update({{"min", tensor.min}, {"max", tensor.max}, {"mean", tensor.mean}});
    one["not_finite"] = tensor.not_finite;
    json["tensors"].push_back(std::move(one));
  }
  for (const auto& [key, value] : facts.metadata) json["metadata"][key] = value;
  for (const PthName& name : facts.names)
    json["names"].push_back({{"name", name.name}, {"called", name.called}, {"understood", name.understood}});
  if (!facts.names.empty()) json["suspicious"] = facts.suspicious();
  if (!facts.problem.empty()) json["problem"] = facts.problem;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
