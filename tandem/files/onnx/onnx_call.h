// What the operators of onnx_operators.h share: access to inputs and attributes, and element types.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

using OnnxTensors = std::vector<OnnxTensor>;

// One node with the values of its inputs; null where an optional input is absent.
struct OnnxCall {
  const OnnxNode& node;
  std::vector<const OnnxTensor*> inputs;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const OnnxTensor& input(std::size_t i) const;
  // The values of an i64 input such as axes or a shape.
  std::vector<std::int64_t> integers(std::size_t i) const;

  const OnnxAttribute* find(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  // Expects `count` values if the attribute is there.
  std::vector<std::int64_t> list(std::string_view name, std::vector<std::int64_t> otherwise) const;
  // Only the default is implemented: another value is an Error.
  void expect_text(std::string_view name, std::string_view only) const;

  template <class... Args>
  void need(bool holds, fmt::format_string<Args...> text, Args&&... args) const {
    if (!holds) fail("[onnx] {}: {}", node.op, fmt::format(text, std::forward<Args>(args)...));
  }
};

// A new array of zeros; throws Error for more than 2^33 bytes.
OnnxTensor make_onnx_tensor(OnnxType type, OnnxDims dims);

// Maps a negative axis to its index; throws Error outside the rank.
std::size_t onnx_axis(const OnnxCall& call, std::int64_t axis, std::size_t rank);

template <class T>
T* values_of(OnnxTensor& tensor) {
  return reinterpret_cast<T*>(tensor.data.data());
}

// Calls f<T>() for the element type. bool is computed as std::uint8_t.
template <class F>
auto on_onnx_type(const OnnxCall& call, OnnxType type, F&& f) {
  switch (type) {
    case OnnxType::f32:
      return f.template operator()<float>();
    case OnnxType::f64:
      return f.template operator()<double>();
    case OnnxType::i32:
      return f.template operator()<std::int32_t>();
    case OnnxType::i64:
      return f.template operator()<std::int64_t>();
    case OnnxType::u8:
    case OnnxType::boolean:
      return f.template operator()<std::uint8_t>();
    default:
      fail("[onnx] {}: expected f32, f64, i32, i64, u8 or bool, got {}", call.node.op, name_of(type));
  }
}

}  // namespace tandem
