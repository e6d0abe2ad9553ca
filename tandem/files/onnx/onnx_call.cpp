#include "tandem/files/onnx/onnx_call.h"

#include <algorithm>

namespace tandem {

const OnnxTensor& OnnxCall::input(std::size_t i) const {
  need(has(i), "expected at least {} inputs, got {}", i + 1, inputs.size());
  return *inputs[i];
}

std::vector<std::int64_t> OnnxCall::integers(std::size_t i) const {
  const OnnxTensor& tensor = input(i);
  need(tensor.type == OnnxType::i64 && tensor.dims.size() <= 1,
       "expected input {} to be a list of i64, got {} {}", i, name_of(tensor.type), to_string(tensor.dims));
  const auto* values = tensor.values<std::int64_t>();
  return {values, values + tensor.count()};
}

const OnnxAttribute* OnnxCall::find(std::string_view name) const {
  const auto found = std::ranges::find(node.attributes, name, &OnnxAttribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

std::int64_t OnnxCall::integer(std::string_view name, std::int64_t otherwise) const {
  const OnnxAttribute* const found = find(name);
  need(!found || found->kind == OnnxAttribute::Kind::integer, "expected an integer as {}", name);
  return found ? found->integer : otherwise;
}

float OnnxCall::number(std::string_view name, float otherwise) const {
  const OnnxAttribute* const found = find(name);
  need(!found || found->kind == OnnxAttribute::Kind::number, "expected a number as {}", name);
  return found ? found->number : otherwise;
}

std::vector<std::int64_t> OnnxCall::list(std::string_view name, std::vector<std::int64_t> otherwise) const {
  const OnnxAttribute* const found = find(name);
  if (!found) return otherwise;
  need(found->kind == OnnxAttribute::Kind::integers && found->integers.size() == otherwise.size(),
       "expected {} integers as {}, got {}", otherwise.size(), name, found->integers.size());
  return found->integers;
}

void OnnxCall::expect_text(std::string_view name, std::string_view only) const {
  const OnnxAttribute* const found = find(name);
  need(!found || found->text == only, "expected {} as {}, got '{}'", only, name, found ? found->text : "");
}

OnnxTensor make_onnx_tensor(OnnxType type, OnnxDims dims) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 33;
  const std::int64_t count = element_count(dims), size = size_of(type);
  check(size > 0 && count <= max_bytes / size, "[onnx] expected a value of at most 2^33 bytes, got {} {}",
        name_of(type), to_string(dims));
  return {.type = type,
          .dims = std::move(dims),
          .data = std::string(static_cast<std::size_t>(count * size), '\0')};
}

std::size_t onnx_axis(const OnnxCall& call, std::int64_t axis, std::size_t rank) {
  const auto axes = static_cast<std::int64_t>(rank);
  call.need(axis >= -axes && axis < axes, "expected an axis from {} to {}, got {}", -axes, axes - 1, axis);
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

}  // namespace tandem
