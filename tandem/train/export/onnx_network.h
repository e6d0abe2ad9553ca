// A network as ONNX nodes, found by tracing one forward pass: whatever the module is made of, what counts is
// the operations that it calls.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/nn/module.h"

namespace tandem {

struct NetworkInput {
  std::int64_t height = 0, width = 0, channels = 0;
  bool flat = false;  // the module takes rows of pixels (n, height · width · channels)
};

// Adds the nodes of module(x) in evaluation mode. `input` is f32 [n, channels, height, width] for any n; the
// result is [n, …] as the module returns it. Batch norms are folded into the convolutions before them;
// weights with more than one axis are stored in `weights` (f32, f16 or bf16). Throws Error for a module that
// is not on the CPU, and for an operation that has no form in ONNX here, by its name.
std::string add_network(OnnxBuilder& builder, Module& module, const NetworkInput& shape,
                        const std::string& input, OnnxType weights = OnnxType::f32);

}  // namespace tandem
