// Computes the graph of an ONNX file with the operators of onnx_operators.h: slow, plain and exact enough to
// tell whether a file says what it should.
#pragma once

#include <map>
#include <string>

#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

// The outputs by name. Throws Error for a graph whose nodes are not in order, an operator that is not known
// (nothing is computed then), data outside the file, an input that is missing or of another type, and inputs
// that an operator does not accept.
std::map<std::string, OnnxTensor> run_onnx(const OnnxModel& model,
                                           const std::map<std::string, OnnxTensor>& inputs);

}  // namespace tandem
