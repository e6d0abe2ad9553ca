#include "tandem/files/onnx/onnx_operators.h"

#include <algorithm>

namespace tandem {

const OnnxOperator* find_onnx_operator(std::string_view name, std::string_view domain) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  for (const auto* list : {&onnx_math_operators(), &onnx_shape_operators(), &onnx_network_operators(),
                           &onnx_quantization_operators()}) {
    const auto found = std::ranges::find(*list, name, &OnnxOperator::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace tandem
