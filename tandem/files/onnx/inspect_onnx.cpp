#include "tandem/files/onnx/inspect_onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tandem/files/onnx/onnx_operators.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/read_file.h"
#include "tandem/text/format_number.h"
#include "tandem/text/table.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

// Floating-point values, and weights in 8-bit integers.
bool has_parameters(const OnnxTensor& tensor) {
  const OnnxType type = tensor.type;
  if (type == OnnxType::u8 || type == OnnxType::i8) return tensor.dims.size() > 1;
  return type == OnnxType::f32 || type == OnnxType::f64 || type == OnnxType::f16 || type == OnnxType::bf16;
}

// Counts of a graph and of the graphs inside it.
struct Counts {
  std::map<std::pair<std::string, std::string>, std::int64_t> operators;  // by domain and name
  std::set<std::string> external;
  std::int64_t constants = 0, parameters = 0;

  void add(const OnnxTensor& tensor) {
    ++constants;
    std::int64_t sum = 0;  // data outside the file may claim any size
    if (has_parameters(tensor) && !__builtin_add_overflow(parameters, tensor.count(), &sum)) parameters = sum;
    if (!tensor.external.empty()) external.insert(one_line(tensor.external));
  }
  void add(const OnnxGraph& graph) {
    for (const OnnxTensor& constant : graph.constants) add(constant);
    for (const OnnxNode& node : graph.nodes) {
      ++operators[{node.domain == "ai.onnx" ? "" : node.domain, node.op}];
      for (const OnnxAttribute& attribute : node.attributes) {
        for (const OnnxTensor& tensor : attribute.tensors) add(tensor);
        for (const OnnxGraph& inner : attribute.graphs) add(inner);
      }
    }
  }
};

std::vector<std::pair<std::string, std::string>> described(const std::vector<OnnxValue>& values) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OnnxValue& value : values) all.emplace_back(one_line(value.name), one_line(value.to_string()));
  return all;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", format_count(static_cast<std::int64_t>(bytes)));
  return bytes < 10'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3)
                            : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string opset_text(const OnnxFacts& facts) {
  std::vector<std::string> all;
  for (const auto& [domain, version] : facts.opsets)
    all.push_back(domain.empty() ? fmt::format("opset {}", version) : fmt::format("{} {}", domain, version));
  return all.empty() ? "no opset" : fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

bool is_onnx_file(const std::filesystem::path& path) {
  if (path.extension() == ".onnx") return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  char begin[16] = {};
  file.read(begin, sizeof begin);
  return is_onnx({begin, static_cast<std::size_t>(file.gcount())});
}

OnnxFacts inspect_onnx(const std::filesystem::path& path) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 31;  // of a protocol buffer
  const std::string bytes = read_file("inspect", path, max_bytes);
  const OnnxModel model = parse_onnx(bytes, one_line(path.string()));
  Counts counts;
  counts.add(model.graph);
  OnnxFacts facts{.file = one_line(path.string()),
                  .bytes = bytes.size(),
                  .ir_version = model.ir_version,
                  .producer = one_line(model.producer + (model.producer_version.empty() ? "" : " ") +
                                       model.producer_version),
                  .inputs = described(model.graph.inputs),
                  .outputs = described(model.graph.outputs),
                  .constants = counts.constants,
                  .parameters = counts.parameters,
                  .external = {counts.external.begin(), counts.external.end()},
                  .functions = model.functions,
                  .metadata = model.metadata,
                  .problem = order_problem(model.graph)};
  for (const auto& [domain, version] : model.opsets)
    facts.opsets.emplace_back(domain == "ai.onnx" ? "" : one_line(domain), version);
  for (const auto& [key, count] : counts.operators) {
    const auto& [domain, name] = key;
    facts.operators.push_back({.name = one_line(domain.empty() ? name : domain + "." + name),
                               .count = count,
                               .known = find_onnx_operator(name, domain) != nullptr});
  }
  std::ranges::stable_sort(facts.operators, std::greater{}, &OnnxOperatorFacts::count);
  if (!facts.problem.empty()) facts.problem = fmt::format("[onnx] {}: {}", facts.file, facts.problem);
  return facts;
}

std::string to_text(const OnnxFacts& facts, const TextStyle& style) {
  std::string text = fmt::format("{}: ONNX, {}, {}, {} parameters{}\n\n", facts.file, opset_text(facts),
                                 size_text(facts.bytes), format_count(facts.parameters),
                                 facts.producer.empty() ? "" : ", written by " + facts.producer);
  Table values{.columns = {{"value"}, {"type and shape"}}};
  for (const auto& [name, type] : facts.inputs) values.rows.push_back({.cells = {{"input " + name}, {type}}});
  for (const auto& [name, type] : facts.outputs)
    values.rows.push_back({.cells = {{"output " + name}, {type}}});
  if (!values.rows.empty()) text += format_table(values, style) + "\n";
  Table operators{.columns = {{"operator"}, {"nodes", Align::right}, {"Tandem"}}};
  for (const OnnxOperatorFacts& one : facts.operators)
    operators.rows.push_back(
        {.cells = {{one.name},
                   {format_count(one.count)},
                   {one.known ? "knows it" : "does not know it", one.known ? Tone::faint : Tone::bad}}});
  if (!operators.rows.empty()) text += format_table(operators, style) + "\n";
  if (!facts.metadata.empty()) {
    Table metadata{.columns = {{"metadata"}, {"value"}}};
    for (const auto& [key, value] : facts.metadata)
      metadata.rows.push_back({.cells = {{one_line(key)}, {one_line(value)}}});
    text += format_table(metadata, style) + "\n";
  }
  if (facts.functions > 0)
    text += fmt::format("The file defines {} operators of its own.\n", facts.functions);
  if (!facts.external.empty())
    text += fmt::format("Data in other files, which were not opened: {}\n", fmt::join(facts.external, ", "));
  return text + "Nothing was computed to read this file.\n";
}

std::string to_json_text(const OnnxFacts& facts) {
  using Json = nlohmann::ordered_json;
  const auto object = [](const auto& pairs) {
    Json json = Json::object();
    for (const auto& [key, value] : pairs) json[key] = value;
    return json;
  };
  Json json = {{"file", facts.file},
               {"format", "onnx"},
               {"bytes", facts.bytes},
               {"ir_version", facts.ir_version},
               {"producer", facts.producer},
               {"opsets", object(facts.opsets)},
               {"inputs", object(facts.inputs)},
               {"outputs", object(facts.outputs)},
               {"operators", Json::array()},
               {"constants", facts.constants},
               {"parameters", facts.parameters},
               {"external", facts.external},
               {"functions", facts.functions},
               {"metadata", object(facts.metadata)}};
  for (const OnnxOperatorFacts& one : facts.operators)
    json["operators"].push_back({{"name", one.name}, {"count", one.count}, {"known", one.known}});
  if (!facts.problem.empty()) json["problem"] = facts.problem;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
