// Builds the graph of an ONNX file node by node. Values are known by their names.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

OnnxAttribute onnx_attribute(std::string name, std::int64_t value);
OnnxAttribute onnx_attribute(std::string name, float value);
OnnxAttribute onnx_attribute(std::string name, std::vector<std::int64_t> values);

// Equal constants of one element or a short list are stored once.
class OnnxBuilder {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<OnnxAttribute>;

  // Adds a node; returns the name of its output, or the names of `count` outputs.
  std::string add(const std::string& op, Names inputs, Attributes attributes = {});
  Names add_split(const std::string& op, Names inputs, std::int64_t count, Attributes attributes = {});
  // The same with a given name for the output.
  void add_named(const std::string& op, Names inputs, std::string output, Attributes attributes = {});

  std::string integers(const std::vector<std::int64_t>& values);  // i64, one axis
  std::string integer(std::int64_t value, OnnxType type);         // u8, i32 or i64, no axis
  std::string number(double value, OnnxType type);                // f32 or f64, no axis
  // f32 of any shape. `name` is used if it is free.
  std::string array(std::string name, OnnxDims dims, std::span<const float> values);
  std::string array(std::string name, OnnxDims dims, std::span<const std::int8_t> values);  // i8
  // The same, stored in `type`, f32, f16 or bf16; returns the name of the values in f32. Throws Error for
  // values beyond the range of f16.
  std::string weights(std::string name, OnnxDims dims, std::span<const float> values, OnnxType type);
  std::string doubles(OnnxDims dims, std::span<const double> values);

  OnnxGraph graph;  // inputs and outputs are the caller's

 private:
  std::string constant(OnnxTensor tensor);

  std::map<std::string, int> numbers_;         // the next number of a name
  std::map<std::string, std::string> shared_;  // contents of a small constant → its name
};

}  // namespace tandem
