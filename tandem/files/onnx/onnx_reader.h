// Reads ONNX files from anywhere. Nothing is executed and no other file is opened.
#pragma once

#include <string>
#include <string_view>

#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

// Throws Error ("[onnx] FILE: …") for a file that is truncated or not ONNX, for a constant whose sizes do not
// fit its data, for graphs nested more than 16 deep, and for more than 2 million parts.
OnnxModel parse_onnx(std::string_view bytes, const std::string& file);

// Whether the bytes can be an ONNX file rather than safetensors or a pickle: they begin with ir_version.
bool is_onnx(std::string_view bytes);

// Why the nodes cannot be computed one after the other: "a cycle through the nodes a, b" or a value that
// nothing computes; empty if they can.
std::string order_problem(const OnnxGraph& graph);

}  // namespace tandem
