// Describes an ONNX file from anywhere without computing anything in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/files/onnx/onnx_model.h"

namespace tandem {

struct TextStyle;

// One operator of the graph and of the graphs inside it.
struct OnnxOperatorFacts {
  std::string name;  // with its domain unless that is ONNX's own: "com.microsoft.Gelu"
  std::int64_t count = 0;
  bool known = false;  // Tandem can compute it
};

struct OnnxFacts {
  std::string file;
  std::uint64_t bytes = 0;
  std::int64_t ir_version = 0;
  std::string producer;
  std::vector<std::pair<std::string, std::int64_t>> opsets;          // domain and version
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  // name, "u8 [height, width, 3]"
  std::vector<OnnxOperatorFacts> operators;                          // the most frequent first
  std::int64_t constants = 0,
               parameters = 0;        // parameters: floating-point values and weights in 8-bit integers
  std::vector<std::string> external;  // files with data, which were not opened
  std::int64_t functions = 0;         // operators that the file defines
  std::map<std::string, std::string> metadata;
  std::string problem;  // why the graph cannot be computed: a cycle, or a value that nothing computes
};

// Throws Error for a file that cannot be read or is not ONNX.
OnnxFacts inspect_onnx(const std::filesystem::path& path);

// Whether inspect_onnx() is for this file: its name ends in .onnx, or its bytes begin like one.
bool is_onnx_file(const std::filesystem::path& path);

// Tables for a terminal.
std::string to_text(const OnnxFacts& facts, const TextStyle& style);

// JSON: {"file", "format": "onnx", "bytes", "ir_version", "producer", "opsets": {domain: version}, "inputs":
// {name: type}, "outputs": {…}, "operators": [{"name", "count", "known"}, …], "constants", "parameters",
// "external": […], "functions", "metadata": {…}, "problem"}; "problem" only if there is one.
std::string to_json_text(const OnnxFacts& facts);

}  // namespace tandem
