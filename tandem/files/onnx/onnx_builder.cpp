#include "tandem/files/onnx/onnx_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/dtype.h"

namespace tandem {
namespace {

template <class T>
std::string bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <class T>
std::string bytes_of(T value) {
  return bytes_of(std::span<const T>(&value, 1));
}

// "Conv" → "conv"
std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

OnnxAttribute onnx_attribute(std::string name, std::int64_t value) {
  return {.name = std::move(name), .kind = OnnxAttribute::Kind::integer, .integer = value};
}

OnnxAttribute onnx_attribute(std::string name, float value) {
  return {.name = std::move(name), .kind = OnnxAttribute::Kind::number, .number = value};
}

OnnxAttribute onnx_attribute(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name), .kind = OnnxAttribute::Kind::integers, .integers = std::move(values)};
}

std::string OnnxBuilder::add(const std::string& op, Names inputs, Attributes attributes) {
  return add_split(op, std::move(inputs), 1, std::move(attributes)).front();
}

OnnxBuilder::Names OnnxBuilder::add_split(const std::string& op, Names inputs, std::int64_t count,
                                          Attributes attributes) {
  Names outputs;
  const std::string name = lower(op);
  for (std::int64_t i = 0; i < count; ++i) outputs.push_back(fmt::format("{}_{}", name, ++numbers_[name]));
  graph.nodes.push_back({.op = op,
                         .name = outputs.front(),
                         .inputs = std::move(inputs),
                         .outputs = outputs,
                         .attributes = std::move(attributes)});
  return outputs;
}

void OnnxBuilder::add_named(const std::string& op, Names inputs, std::string output, Attributes attributes) {
  graph.nodes.push_back({.op = op,
                         .name = output,
                         .inputs = std::move(inputs),
                         .outputs = {output},
                         .attributes = std::move(attributes)});
}

std::string OnnxBuilder::constant(OnnxTensor tensor) {
  const bool named = !tensor.name.empty();
  if (!named) {
    const std::string key =
        fmt::format("{} {} {}", name_of(tensor.type), to_string(tensor.dims), tensor.data);
    const auto [found, added] = shared_.try_emplace(key, fmt::format("constant_{}", shared_.size() + 1));
    if (!added) return found->second;
    tensor.name = found->second;
  } else if (const int number = ++numbers_[tensor.name]; number > 1) {
    tensor.name += fmt::format("_{}", number);
  }
  graph.constants.push_back(std::move(tensor));
  return graph.constants.back().name;
}

std::string OnnxBuilder::integers(const std::vector<std::int64_t>& values) {
  return constant({.type = OnnxType::i64,
                   .dims = {std::ssize(values)},
                   .data = bytes_of(std::span<const std::int64_t>(values))});
}

std::string OnnxBuilder::integer(std::int64_t value, OnnxType type) {
  expect(type == OnnxType::u8 || type == OnnxType::i32 || type == OnnxType::i64);
  return constant({.type = type,
                   .data = type == OnnxType::u8    ? bytes_of(static_cast<std::uint8_t>(value))
                           : type == OnnxType::i32 ? bytes_of(static_cast<std::int32_t>(value))
                                                   : bytes_of(value)});
}

std::string OnnxBuilder::number(double value, OnnxType type) {
  expect(type == OnnxType::f32 || type == OnnxType::f64);
  return constant(
      {.type = type, .data = type == OnnxType::f32 ? bytes_of(static_cast<float>(value)) : bytes_of(value)});
}

std::string OnnxBuilder::array(std::string name, OnnxDims dims, std::span<const float> values) {
  expect(element_count(dims) == std::ssize(values));
  return constant({.name = std::move(name), .dims = std::move(dims), .data = bytes_of(values)});
}

std::string OnnxBuilder::array(std::string name, OnnxDims dims, std::span<const std::int8_t> values) {
  expect(element_count(dims) == std::ssize(values));
  return constant(
      {.name = std::move(name), .type = OnnxType::i8, .dims = std::move(dims), .data = bytes_of(values)});
}

std::string OnnxBuilder::doubles(OnnxDims dims, std::span<const double> values) {
  expect(element_count(dims) == std::ssize(values));
  return constant({.type = OnnxType::f64, .dims = std::move(dims), .data = bytes_of(values)});
}

std::string OnnxBuilder::weights(std::string name, OnnxDims dims, std::span<const float> values,
                                 OnnxType type) {
  if (type == OnnxType::f32) return array(std::move(name), std::move(dims), values);
  std::vector<std::uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) {
    check(type == OnnxType::bf16 || std::abs(value) < 65520.0f,
          "[export] expected weights up to 65504 for fp16, got {} in {}", value, name);
    halves.push_back(type == OnnxType::bf16 ? BFloat16(value).bits : to_half(value));
  }
  const std::string stored = constant({.name = std::move(name),
                                       .type = type,
                                       .dims = std::move(dims),
                                       .data = bytes_of(std::span<const std::uint16_t>(halves))});
  return add("Cast", {stored},
             {onnx_attribute("to", std::int64_t{static_cast<std::int32_t>(OnnxType::f32)})});
}

}  // namespace tandem
