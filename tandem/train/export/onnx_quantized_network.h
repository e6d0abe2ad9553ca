// A network in 8-bit integers as ONNX nodes in "QDQ" form: each convolution stands between nodes that
// convert 8-bit integers to f32 and back (DequantizeLinear, QuantizeLinear). A runtime can compute the graph
// in f32; those that know the form, such as ONNX Runtime, replace parts of it by integer arithmetic.
#pragma once

#include <string>

#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/nn/quantized_resnet.h"

namespace tandem {

// Adds the nodes of module(x). `input` is f32 [n, channels, height, width] for any n; the result is f32
// [n, classes]. Weights are i8 with one scale per filter, biases f32, activations u8. The first convolution
// has weights and images rounded to bf16.
//
// Rounding is where Tandem rounds: a residual is added in f32, and the sum is rounded. With `integer_sums`
// the convolution's result is rounded to 8 bits before, too, with a scale for all values on which the sum
// depends. ONNX Runtime computes these convolutions in integers only so.
std::string add_quantized_network(OnnxBuilder& builder, QuantizedResNet& module, const std::string& input,
                                  bool integer_sums);

}  // namespace tandem
