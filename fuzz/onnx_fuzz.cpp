// ONNX files: described without being computed, and written again to the same bytes once written.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/fuzz_file.h"
#include "tandem/files/onnx/inspect_onnx.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/text/table.h"

namespace tandem {
namespace {

// The writer is for the graphs that Tandem makes: without inner graphs and data elsewhere.
bool is_writable(const OnnxAttribute& attribute) {
  using Kind = OnnxAttribute::Kind;
  for (const OnnxTensor& tensor : attribute.tensors)
    if (!tensor.external.empty()) return false;
  if (attribute.kind == Kind::tensor) return attribute.tensors.size() == 1;
  return attribute.kind >= Kind::number && attribute.kind <= Kind::integers && attribute.kind != Kind::graph;
}

bool is_writable(const OnnxGraph& graph) {
  for (const OnnxTensor& constant : graph.constants)
    if (!constant.external.empty()) return false;
  for (const OnnxNode& node : graph.nodes)
    for (const OnnxAttribute& attribute : node.attributes)
      if (!is_writable(attribute)) return false;
  return true;
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto model = result_or_none([&] { return parse_onnx(input, "file"); });
  if (!model) return 0;
  const OnnxFacts facts = inspect_onnx(fuzz_file(input));
  require(facts.constants >= 0 && facts.parameters >= 0 && facts.bytes == size);
  require(facts.problem.empty() == order_problem(model->graph).empty());
  to_text(facts, TextStyle{});
  require(nlohmann::json::accept(to_json_text(facts)));
  if (!is_writable(model->graph)) return 0;
  const std::string written = to_onnx(*model);
  const OnnxModel again = parse_onnx(written, "again");
  require(to_onnx(again) == written && again.graph.nodes.size() == model->graph.nodes.size());
  return 0;
}
