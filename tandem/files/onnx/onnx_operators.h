// The ONNX operators that Tandem can compute, of opset 18: plain loops that follow ONNX's definitions, to
// verify exported files. They cover what the exporter writes.
#pragma once

#include <string_view>
#include <vector>

#include "tandem/files/onnx/onnx_call.h"

namespace tandem {

struct OnnxOperator {
  std::string_view name;
  OnnxTensors (*compute)(const OnnxCall& call);
};

// Null for an operator that is not in the list.
const OnnxOperator* find_onnx_operator(std::string_view name, std::string_view domain = "");

// The parts of the list.
const std::vector<OnnxOperator>& onnx_math_operators();
const std::vector<OnnxOperator>& onnx_shape_operators();
const std::vector<OnnxOperator>& onnx_network_operators();
const std::vector<OnnxOperator>& onnx_quantization_operators();

}  // namespace tandem
