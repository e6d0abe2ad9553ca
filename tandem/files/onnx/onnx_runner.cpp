#include "tandem/files/onnx/onnx_runner.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/files/onnx/onnx_operators.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

void check_runnable(const OnnxGraph& graph) {
  const std::string problem = order_problem(graph);
  check(problem.empty(), "[onnx] {}", problem);
  for (const OnnxNode& node : graph.nodes)
    check(find_onnx_operator(node.op, node.domain) != nullptr, "[onnx] the operator '{}' is not known",
          one_line(node.op));
  for (const OnnxTensor& constant : graph.constants)
    check(constant.external.empty() && size_of(constant.type) > 0,
          "[onnx] the values of the constant '{}' are not in the file or of a type that is not known",
          one_line(constant.name));
}

void check_input(const OnnxValue& expected, const OnnxTensor& given) {
  bool fits = given.type == expected.type;
  if (expected.has_shape) {
    fits = fits && given.dims.size() == expected.sizes.size();
    for (std::size_t i = 0; fits && i < given.dims.size(); ++i)
      fits = expected.sizes[i].value < 0 || expected.sizes[i].value == given.dims[i];
  }
  check(fits, "[onnx] expected {} as the input '{}', got {} {}", expected.to_string(),
        one_line(expected.name), name_of(given.type), to_string(given.dims));
}

}  // namespace

std::map<std::string, OnnxTensor> run_onnx(const OnnxModel& model,
                                           const std::map<std::string, OnnxTensor>& inputs) {
  const OnnxGraph& graph = model.graph;
  check_runnable(graph);
  std::map<std::string, const OnnxTensor*> values;
  std::map<std::string, OnnxTensor> computed;
  std::map<std::string, int> uses;
  for (const OnnxTensor& constant : graph.constants) values[constant.name] = &constant;
  for (const OnnxValue& input : graph.inputs) {
    const auto found = inputs.find(input.name);
    check(found != inputs.end() || values.contains(input.name), "[onnx] expected the input '{}', got none",
          one_line(input.name));
    if (found == inputs.end()) continue;
    check_input(input, found->second);
    values[input.name] = &found->second;
  }
  for (const OnnxNode& node : graph.nodes)
    for (const std::string& input : node.inputs) ++uses[input];
  for (const OnnxValue& output : graph.outputs) ++uses[output.name];

  for (const OnnxNode& node : graph.nodes) {
    OnnxCall call{.node = node, .inputs = {}};
    for (const std::string& input : node.inputs)
      call.inputs.push_back(input.empty() ? nullptr : values.at(input));
    OnnxTensors results = find_onnx_operator(node.op, node.domain)->compute(call);
    check(results.size() == node.outputs.size(), "[onnx] {}: expected {} outputs, got {}", node.op,
          results.size(), node.outputs.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      values[node.outputs[i]] = &(computed[node.outputs[i]] = std::move(results[i]));
    for (const std::string& input : node.inputs)  // memory of what is not needed any more
      if (--uses[input] == 0) computed.erase(input);
  }
  std::map<std::string, OnnxTensor> outputs;
  for (const OnnxValue& output : graph.outputs) outputs[output.name] = *values.at(output.name);
  return outputs;
}

}  // namespace tandem
